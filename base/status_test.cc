#include "base/status.h"

#include "base/test_matchers.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

absl::Status Fails() {
  return ErrorWithReason(absl::StatusCode::kNotFound, "PROBLEM_NOT_FOUND", "no problem x");
}

absl::StatusOr<int> Half(int value) {
  if (value % 2 != 0) return absl::InvalidArgumentError("odd");
  return value / 2;
}

absl::StatusOr<int> Quarter(int value) {
  ASSAY_ASSIGN_OR_RETURN(const int half, Half(value));
  ASSAY_ASSIGN_OR_RETURN(const int quarter, Half(half));
  return quarter;
}

TEST(Status, AnnotateKeepsCodeAndReason) {
  const absl::Status status = Annotate(Fails(), "loading");
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound, "loading: no problem x"));
  EXPECT_THAT(status, HasReason("PROBLEM_NOT_FOUND"));
  EXPECT_OK(Annotate(absl::OkStatus(), "loading"));
}

TEST(Status, AssignOrReturn) {
  ASSERT_OK_AND_ASSIGN(const int quarter, Quarter(8));
  EXPECT_EQ(quarter, 2);
  EXPECT_THAT(Quarter(6), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(Status, ErrnoKeepsItsMeaning) {
  EXPECT_THAT(ErrnoError(ENOSPC, "write"), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(ErrnoError(ENOENT, "open"), StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace assay
