// Asks a real driver what one of its devices is.
#ifndef ASSAY_WORKER_BACKEND_CUDA_DEVICE_QUERY_H_
#define ASSAY_WORKER_BACKEND_CUDA_DEVICE_QUERY_H_

#include <string>

#include "absl/status/status.h"

namespace assay {

namespace internal::v1 {
class DeviceFacts;
}

// Makes no context, so that nothing of the device is taken; still only for runners, since a driver
// that was initialised stays in the process. UNAVAILABLE with reason DRIVER_MISSING,
// DRIVER_TOO_OLD, DRIVER_FAILED, DRIVER_EMULATED, DEVICE_NOT_FOUND or DEVICE_TOO_OLD says what to
// do.
absl::Status QueryDevice(const std::string& driver, int ordinal, internal::v1::DeviceFacts* facts);

}  // namespace assay

#endif  // ASSAY_WORKER_BACKEND_CUDA_DEVICE_QUERY_H_
