// What the errors of the store mean for the dispatcher. Pure.
#ifndef ASSAY_SERVER_DISPATCH_STORE_ERRORS_H_
#define ASSAY_SERVER_DISPATCH_STORE_ERRORS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "server/dispatch/queue.h"

namespace assay {

// Whether a failed write is to be tried again or was refused because the store knows better.
WriteFailure Classify(const absl::Status& status);

// Trouble of the store that goes away by itself.
bool IsPassing(const absl::Status& status);

void LogFailedWrite(std::string_view what, const std::string& evaluation, int64_t fence,
                    const absl::Status& status);

}  // namespace assay

#endif  // ASSAY_SERVER_DISPATCH_STORE_ERRORS_H_
