#include "client/cli/output.h"

#include "assay/v1/evaluation.pb.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

TEST(Output, TimesHaveThreeDigitsAndAUnit) {
  EXPECT_EQ(FormatNanoseconds(812), "812 ns");
  EXPECT_EQ(FormatNanoseconds(10400), "10.4 us");
  EXPECT_EQ(FormatNanoseconds(3.214e6), "3.21 ms");
  EXPECT_EQ(FormatNanoseconds(1.25e9), "1.25 s");
  EXPECT_EQ(FormatNanoseconds(0), "-");
  EXPECT_EQ(FormatRatio(0.931), "93.1 %");
}

TEST(Output, TableIgnoresColourWhenItMeasures) {
  const std::string table = FormatTable(
      {{"name", "time"}, {Paint("ab", Color::kRed, true), "1 ns"}, {"abcdef", "10 ns"}}, {1});
  EXPECT_EQ(table, "name     time\n\x1b[31mab\x1b[0m       1 ns\nabcdef  10 ns\n");
}

TEST(Output, JsonKeepsTheProtosNames) {
  v1::Evaluation evaluation;
  evaluation.set_name("evaluations/1");
  evaluation.set_state(v1::SUCCEEDED);
  evaluation.mutable_outcome()->set_verdict(v1::PASSED);
  evaluation.mutable_outcome()->add_workload_results()->mutable_measurement()->set_median_ns(2.5);
  const std::string json = ToJson(evaluation);
  EXPECT_THAT(json, HasSubstr("\"state\":\"SUCCEEDED\""));
  EXPECT_THAT(json, HasSubstr("\"median_ns\":2.5"));
  EXPECT_THAT(
      ErrorJson(ErrorWithReason(absl::StatusCode::kNotFound, "PROBLEM_NOT_FOUND", "no \"x\"")),
      "{\"error\":{\"code\":\"NOT_FOUND\",\"reason\":\"PROBLEM_NOT_FOUND\",\"message\":\"no "
      "\\\"x\\\"\"}}");
}

}  // namespace
}  // namespace assay
