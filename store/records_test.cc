#include "store/records.h"

#include <limits>

#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "store/testing/builders.h"
#include "store/testing/proto_matcher.h"

namespace assay {
namespace {

using ::assay::testing::EqualsProto;
using ::assay::testing::MakeOutcome;

TEST(RecordsTest, TimesRoundTrip) {
  for (const int64_t nanos : {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{999'999'999},
                              int64_t{-1'000'000'000}, int64_t{1'700'000'000'123'456'789}}) {
    const google::protobuf::Timestamp timestamp = ToTimestamp(absl::FromUnixNanos(nanos));
    EXPECT_GE(timestamp.nanos(), 0);
    EXPECT_LT(timestamp.nanos(), 1'000'000'000);
    EXPECT_EQ(ToUnixNanos(timestamp), nanos);
  }
  google::protobuf::Timestamp far;
  far.set_seconds(std::numeric_limits<int64_t>::max());
  EXPECT_EQ(ToUnixNanos(far), std::numeric_limits<int64_t>::max());
}

TEST(RecordsTest, SplitOutcomeLosesNothing) {
  const v1::Outcome whole = MakeOutcome("small", 100);
  OutcomeParts parts = SplitOutcome(whole);
  EXPECT_EQ(parts.outcome.workload_results(0).measurement().runners_size(), 0);
  EXPECT_EQ(parts.outcome.build().log(), "");
  EXPECT_EQ(parts.outcome.output_log(), "");
  v1::Outcome joined = parts.outcome;
  AddLogs(parts.build_log, parts.output_log, &joined);
  for (const OutcomeParts::Runner& runner : parts.runners) {
    *joined.mutable_workload_results(runner.workload_index)->mutable_measurement()->add_runners() =
        runner.samples;
  }
  EXPECT_THAT(joined, EqualsProto(whole));
  // What has no build keeps none.
  EXPECT_FALSE(SplitOutcome(v1::Outcome()).outcome.has_build());
}

TEST(RecordsTest, ResultRowsNameTheFastestBaseline) {
  v1::Outcome outcome = MakeOutcome("small", 100);
  v1::WorkloadResult* result = outcome.mutable_workload_results(0);
  v1::BaselineResult* faster = result->add_baselines();
  faster->set_name("openblas");
  faster->set_median_ns(80);
  faster->set_speedup_ratio(0.8);
  v1::BaselineResult* broken = result->add_baselines();
  broken->set_name("broken");
  broken->set_median_ns(std::numeric_limits<double>::quiet_NaN());
  outcome.add_workload_results()->set_workload("unmeasured");
  const std::vector<ResultRow> rows = ResultRows(outcome);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].baseline, "openblas");
  EXPECT_EQ(rows[0].speedup_ratio, 0.8);
  EXPECT_EQ(rows[0].bound, "MEMORY");
  EXPECT_EQ(rows[1].workload, "unmeasured");
  EXPECT_EQ(rows[1].median_ns, 0);
  EXPECT_EQ(rows[1].bound, "");
  EXPECT_EQ(rows[1].baseline, "");
}

TEST(RecordsTest, PageTokensRoundTrip) {
  for (const std::string key : {"1", "42", "problems/gelu", "\xff\x01"}) {
    EXPECT_EQ(*DecodePageToken(kProblemPages, EncodePageToken(kProblemPages, key)), key);
  }
  EXPECT_THAT(DecodePageToken(kCandidatePages, EncodePageToken(kProblemPages, "a")),
              HasReason("PAGE_TOKEN_INVALID"));
  EXPECT_EQ(*DecodeNumericPageToken(kEvaluationPages, EncodePageToken(kEvaluationPages, "42")), 42);
  EXPECT_THAT(DecodeNumericPageToken(kEvaluationPages, EncodePageToken(kEvaluationPages, "0")),
              HasReason("PAGE_TOKEN_INVALID"));
}

TEST(RecordsTest, ProblemNames) {
  EXPECT_EQ(ProblemName("gelu"), "problems/gelu");
  EXPECT_EQ(ProblemName("problems/gelu"), "problems/gelu");
  EXPECT_EQ(ProblemName(""), "");
}

}  // namespace
}  // namespace assay
