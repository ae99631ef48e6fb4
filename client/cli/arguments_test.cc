#include "client/cli/arguments.h"

#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const FlagSet kFlags{.valued = {"problem", "workload", "budget"}, .switches = {"json"}};

TEST(Arguments, MixesFlagsAndPositionalWords) {
  ASSERT_OK_AND_ASSIGN(const Arguments arguments,
                       Arguments::Parse({"a.cc", "--problem", "gelu", "--json", "b.cc",
                                         "--workload=n=4", "--workload", "m=2", "--", "--c"},
                                        kFlags));
  EXPECT_THAT(arguments.positional(), ElementsAre("a.cc", "b.cc", "--c"));
  EXPECT_EQ(arguments.Get("problem"), "gelu");
  EXPECT_TRUE(arguments.Has("json"));
  EXPECT_THAT(arguments.GetAll("workload"), ElementsAre("n=4", "m=2"));
  EXPECT_EQ(arguments.Get("budget", "7"), "7");
}

TEST(Arguments, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(Arguments::Parse({"--jsn"}, kFlags),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--json")));
  EXPECT_THAT(Arguments::Parse({"--problem"}, kFlags),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("needs a value")));
  EXPECT_THAT(Arguments::Parse({"--json=1"}, kFlags),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("takes no value")));
}

TEST(Arguments, IntegersAreChecked) {
  ASSERT_OK_AND_ASSIGN(const Arguments arguments, Arguments::Parse({"--budget", "12x"}, kFlags));
  EXPECT_THAT(arguments.GetInt("budget", 1, 0, 10), StatusIs(absl::StatusCode::kInvalidArgument));
  ASSERT_OK_AND_ASSIGN(const Arguments big, Arguments::Parse({"--budget", "11"}, kFlags));
  EXPECT_THAT(big.GetInt("budget", 1, 0, 10), StatusIs(absl::StatusCode::kInvalidArgument));
  ASSERT_OK_AND_ASSIGN(const int64_t value, big.GetInt("budget", 1, 0, 11));
  EXPECT_EQ(value, 11);
}

}  // namespace
}  // namespace assay
