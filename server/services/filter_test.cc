#include "server/services/filter.h"

#include <string>

#include "absl/time/time.h"
#include "base/limits.h"
#include "base/random.h"
#include "base/test_matchers.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

using Field = EvaluationCondition::Field;
using Operator = EvaluationCondition::Operator;
using ::testing::HasSubstr;

TEST(Filter, ParsesEveryField) {
  ASSERT_OK_AND_ASSIGN(
      const auto got,
      ParseEvaluationFilter("problem = \"problems/gelu\" AND candidate!=abc AND state = SUCCEEDED "
                            "AND verdict != PASSED AND level=RANKED AND device_class = 'cpu-x' AND "
                            "label = \"a \\\"b\\\\\" AND create_time > 2024-05-01T12:00:00.5Z AND "
                            "create_time<\"2024-05-02T00:00:00+02:00\""));
  const absl::Time t1 = absl::FromUnixSeconds(1'714'564'800) + absl::Milliseconds(500);
  const absl::Time t2 = absl::FromUnixSeconds(1'714'600'800);
  const struct {
    Field field;
    Operator op;
    std::string text;
    int64_t number;
  } want[] = {
      {Field::kProblem, Operator::kEqual, "problems/gelu", 0},
      {Field::kCandidate, Operator::kNotEqual, "candidates/abc", 0},
      {Field::kState, Operator::kEqual, "", v1::SUCCEEDED},
      {Field::kVerdict, Operator::kNotEqual, "", v1::PASSED},
      {Field::kLevel, Operator::kEqual, "", v1::RANKED},
      {Field::kDeviceClass, Operator::kEqual, "cpu-x", 0},
      {Field::kLabel, Operator::kEqual, "a \"b\\", 0},
      {Field::kCreateTime, Operator::kGreater, "", absl::ToUnixNanos(t1)},
      {Field::kCreateTime, Operator::kLess, "", absl::ToUnixNanos(t2)},
  };
  ASSERT_EQ(got.size(), std::size(want));
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].field, want[i].field) << i;
    EXPECT_EQ(got[i].op, want[i].op) << i;
    EXPECT_EQ(got[i].text, want[i].text) << i;
    EXPECT_EQ(got[i].number, want[i].number) << i;
  }
}

TEST(Filter, BlankMeansEverything) {
  for (const char* text : {"", " ", "\t\n"}) {
    ASSERT_OK_AND_ASSIGN(const auto got, ParseEvaluationFilter(text));
    EXPECT_TRUE(got.empty());
  }
}

TEST(Filter, ErrorsNameTheColumn) {
  const struct {
    std::string text;
    std::string want;
  } cases[] = {
      {"colour = red", "column 1: expected a field, found 'colour = red'"},
      {"state", "column 6: expected =, !=, < or >, found the end"},
      {"state =", "column 8: expected a value, found the end"},
      {"state = DONE", "column 9: unknown state 'DONE'"},
      {"verdict = passed", "column 11: unknown verdict"},
      {"level = 3", "column 9: unknown level"},
      {"state < QUEUED", "column 7: < and > are for create_time only"},
      {"create_time = 2024-05-01T12:00:00Z", "column 13: create_time takes < and > only"},
      {"create_time >= 2024-05-01T12:00:00Z", "column 13: <= and >= are not supported"},
      {"create_time < yesterday", "column 15: 'yesterday' is not an RFC 3339 time"},
      {"state = QUEUED OR state = RUNNING", "column 16: expected AND"},
      {"state = QUEUED state = RUNNING", "column 16: expected AND"},
      {"state = QUEUED AND", "column 19: expected a field, found the end"},
      {"NOT state = QUEUED", "column 1: expected a field"},
      {"(state = QUEUED)", "column 1: expected a field"},
      {"label = \"open", "column 9: the quote is not closed"},
      {"label = \"a\\n\"", "column 11: only"},
      {std::string("label = \"a\0b\"", 13), "column 11: control bytes"},
      {std::string(limits::kFilterBytesMax + 1, ' '), "column 4097"},
  };
  for (const auto& c : cases) {
    const auto got = ParseEvaluationFilter(c.text);
    EXPECT_THAT(got, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.want))) << c.text;
    EXPECT_THAT(got, HasReason("FILTER_INVALID")) << c.text;
  }
}

// Random texts, bytes and pieces of the grammar: never a crash, every error has column and reason.
TEST(Filter, SurvivesHostileText) {
  constexpr uint64_t kSeed = 42;
  Random random(kSeed);
  const std::string pieces[] = {"state",
                                "create_time",
                                " AND ",
                                "=",
                                "!=",
                                "<",
                                "\"",
                                "\\",
                                "QUEUED",
                                "2024-05-01T12:00:00Z",
                                "'",
                                " ",
                                "problem",
                                "\xff",
                                std::string(1, '\0'),
                                "99999-99-99T99:99:99Z",
                                "label"};
  int accepted = 0;
  for (int i = 0; i < 50'000; ++i) {
    std::string text;
    const uint64_t length = random.Below(14);
    for (uint64_t k = 0; k < length; ++k) {
      if (random.Chance(0.1)) {
        text.push_back(static_cast<char>(random.Below(256)));
      } else {
        text += pieces[random.Below(std::size(pieces))];
      }
    }
    const auto got = ParseEvaluationFilter(text);
    accepted += got.ok();
    if (!got.ok()) {
      ASSERT_THAT(got, HasReason("FILTER_INVALID")) << "seed " << kSeed << " run " << i;
      ASSERT_THAT(std::string(got.status().message()), HasSubstr("column "));
    }
  }
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace assay
