// Helpers for absl::Status: early return, context on the way up, and a stable machine-readable
// reason.
#ifndef ASSAY_BASE_STATUS_H_
#define ASSAY_BASE_STATUS_H_

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace assay {

// An error whose `reason` (stable UPPER_SNAKE, e.g. "PROBLEM_NOT_FOUND") reaches clients beside the
// message.
absl::Status ErrorWithReason(absl::StatusCode code, std::string_view reason,
                             std::string_view message);

// The reason given to ErrorWithReason, or "" when there is none.
std::string GetReason(const absl::Status& status);

// Puts "context: " before the message; keeps code and payloads. OK stays OK.
absl::Status Annotate(const absl::Status& status, std::string_view context);

// INTERNAL, UNAVAILABLE, ... by errno, with "what: strerror". `what` names the call and its object.
absl::Status ErrnoError(int error_number, std::string_view what);

}  // namespace assay

#define ASSAY_RETURN_IF_ERROR(expr)                \
  do {                                             \
    ::absl::Status assay_status_ = (expr);         \
    if (!assay_status_.ok()) return assay_status_; \
  } while (false)

#define ASSAY_STATUS_CONCAT_INNER_(a, b) a##b
#define ASSAY_STATUS_CONCAT_(a, b) ASSAY_STATUS_CONCAT_INNER_(a, b)
#define ASSAY_ASSIGN_OR_RETURN_IMPL_(tmp, lhs, expr) \
  auto tmp = (expr);                                 \
  if (!tmp.ok()) return std::move(tmp).status();     \
  lhs = std::move(tmp).value()

// ASSAY_ASSIGN_OR_RETURN(auto x, F()); two statements, so never the body of a braceless if.
#define ASSAY_ASSIGN_OR_RETURN(lhs, expr) \
  ASSAY_ASSIGN_OR_RETURN_IMPL_(ASSAY_STATUS_CONCAT_(assay_statusor_, __COUNTER__), lhs, expr)

#endif  // ASSAY_BASE_STATUS_H_
