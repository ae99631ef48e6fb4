// A device-tier candidate in the place of a guest: its kernels are launched by the runner itself,
// through the CUDA driver API.
//
// The driver is a library that is loaded at run time; here it is the emulated one, whose every
// check is on. What it finds ends the session, as a crash ends a guest. The device sees inputs,
// outputs and workspaces; nothing else is ever there.
#ifndef ASSAY_WORKER_BACKEND_CUDA_DEVICE_SESSION_H_
#define ASSAY_WORKER_BACKEND_CUDA_DEVICE_SESSION_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/expression/expression.h"
#include "kernels/problem.h"
#include "worker/guest/guest_session.h"

namespace assay {

namespace v1 {
class CandidateSpec;
}

struct DeviceSessionOptions {
  std::string driver;  // path of the emulated driver's library
  int arch = 80;
  const v1::CandidateSpec* candidate = nullptr;  // outlives the session
  ValueMap configuration;
  ResolvedWorkload workload;
  uint64_t seed = 0;  // of the distances between buffers
  int host_threads = 1;
};

// Not thread-safe, and one at a time in a process. UNAVAILABLE with reason DRIVER_MISSING or
// DRIVER_TOO_OLD when the library cannot be used.
absl::StatusOr<std::unique_ptr<GuestSession>> MakeDeviceSession(DeviceSessionOptions options);

}  // namespace assay

#endif  // ASSAY_WORKER_BACKEND_CUDA_DEVICE_SESSION_H_
