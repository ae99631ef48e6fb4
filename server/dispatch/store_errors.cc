#include "server/dispatch/store_errors.h"

#include "absl/strings/str_cat.h"
#include "base/log.h"

namespace assay {

WriteFailure Classify(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kFailedPrecondition:
      return WriteFailure::kConflict;
    default:
      return WriteFailure::kStorage;
  }
}

bool IsPassing(const absl::Status& status) {
  return status.code() == absl::StatusCode::kUnavailable ||
         status.code() == absl::StatusCode::kResourceExhausted;
}

void LogFailedWrite(std::string_view what, const std::string& evaluation, int64_t fence,
                    const absl::Status& status) {
  Log(LogLevel::kWarning, "dispatch_write_failed",
      {{"what", std::string(what)},
       {"evaluation", evaluation},
       {"fence", absl::StrCat(fence)},
       {"error", status.ToString()}});
}

}  // namespace assay
