// GoogleTest matchers and helpers for absl::Status. Only for tests.
#ifndef ASSAY_BASE_TEST_MATCHERS_H_
#define ASSAY_BASE_TEST_MATCHERS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status.h"
#include "gmock/gmock.h"

namespace assay {

inline const absl::Status& ToStatus(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& ToStatus(const absl::StatusOr<T>& value) {
  return value.status();
}

MATCHER(IsOk, "is OK") {
  const absl::Status& status = ToStatus(arg);
  if (!status.ok()) *result_listener << "which is " << status.ToString();
  return status.ok();
}

// StatusIs(code) and StatusIs(code, message matcher).
MATCHER_P(StatusIs, code, "") {
  const absl::Status& status = ToStatus(arg);
  if (status.code() != code) *result_listener << "which is " << status.ToString();
  return status.code() == code;
}
MATCHER_P2(StatusIs, code, message, "") {
  const absl::Status& status = ToStatus(arg);
  if (status.code() != code) {
    *result_listener << "which is " << status.ToString();
    return false;
  }
  return ::testing::ExplainMatchResult(message, std::string(status.message()), result_listener);
}

MATCHER_P(HasReason, reason, "") {
  const std::string got = ::assay::GetReason(ToStatus(arg));
  if (got != reason)
    *result_listener << "whose reason is '" << got << "': " << ToStatus(arg).ToString();
  return got == reason;
}

}  // namespace assay

#define ASSAY_ASSERT_OK_AND_ASSIGN_IMPL_(tmp, lhs, expr) \
  auto tmp = (expr);                                     \
  ASSERT_TRUE(tmp.ok()) << tmp.status().ToString();      \
  lhs = std::move(tmp).value()
#define ASSERT_OK_AND_ASSIGN(lhs, expr)                                                          \
  ASSAY_ASSERT_OK_AND_ASSIGN_IMPL_(ASSAY_STATUS_CONCAT_(assay_test_statusor_, __COUNTER__), lhs, \
                                   expr)
#define ASSERT_OK(expr) ASSERT_THAT(expr, ::assay::IsOk())
#define EXPECT_OK(expr) EXPECT_THAT(expr, ::assay::IsOk())

#endif  // ASSAY_BASE_TEST_MATCHERS_H_
