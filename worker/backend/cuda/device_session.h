// A device-tier candidate in the place of a guest: its kernels are launched by the runner itself,
// through the CUDA driver API.
//
// The driver is a library that is loaded at run time: the emulated one, whose every check is on and
// whose calls carry no time, or a real one. The device sees inputs, outputs and workspaces; nothing
// else of an evaluation is ever there.
#ifndef ASSAY_WORKER_BACKEND_CUDA_DEVICE_SESSION_H_
#define ASSAY_WORKER_BACKEND_CUDA_DEVICE_SESSION_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/expression/expression.h"
#include "kernels/problem.h"
#include "worker/backend/cuda/device_health.h"
#include "worker/guest/guest_session.h"

namespace assay {

namespace v1 {
class CandidateSpec;
}

struct DeviceOptions {
  std::string driver;                    // path or soname of the driver's library
  int arch = 80;                         // of the emulated driver's device
  int host_threads = 1;                  // of the emulated driver
  int ordinal = 0;                       // of a real driver's device
  DeviceHealthSource* health = nullptr;  // of that device; outlives all sessions
};

// What a candidate needs beside its artifact.
struct DeviceSessionOptions {
  const v1::CandidateSpec* candidate = nullptr;  // outlives the session
  ValueMap configuration;
  ResolvedWorkload workload;
  // Follows from the nonce: of the distances between buffers, and on a real driver of guard
  // patterns.
  uint64_t seed = 0;
};

// One device, opened once in a process: sessions share its context. Not thread-safe.
class DeviceSessions {
 public:
  // UNAVAILABLE with reason DRIVER_MISSING, DRIVER_TOO_OLD, DRIVER_FAILED, DEVICE_NOT_FOUND or
  // DEVICE_TOO_OLD says what to do.
  static absl::StatusOr<std::unique_ptr<DeviceSessions>> Open(const DeviceOptions& options);
  virtual ~DeviceSessions() = default;
  virtual bool is_emulated() const = 0;
  // One at a time, and none after one that left the device unclean.
  virtual absl::StatusOr<std::unique_ptr<GuestSession>> Make(DeviceSessionOptions options) = 0;
};

}  // namespace assay

#endif  // ASSAY_WORKER_BACKEND_CUDA_DEVICE_SESSION_H_
