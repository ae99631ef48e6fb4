// A candidate on the emulated driver, whose every check is on. What a check proves ends the
// session, as a crash ends a guest.
#ifndef ASSAY_WORKER_BACKEND_CUDA_EMULATED_SESSION_H_
#define ASSAY_WORKER_BACKEND_CUDA_EMULATED_SESSION_H_

#include <memory>

#include "absl/time/time.h"
#include "worker/backend/cuda/device_session.h"
#include "worker/backend/cuda/driver.h"

namespace assay {

struct EmulatedDeviceOptions {
  int arch = 80;
  int host_threads = 1;
  // CPU time of all host threads that the launches of one call may take together. Far enough below
  // limits::kRunnerSilentSeconds that a call which uses it up is told, also on a busy machine.
  absl::Duration call_cpu_max = absl::Seconds(60);
};

// One at a time in a process. `driver` is emulated and outlives the session. Its calls carry no
// time.
std::unique_ptr<GuestSession> MakeEmulatedSession(const CudaDriver* driver,
                                                  const EmulatedDeviceOptions& device,
                                                  DeviceSessionOptions options);

}  // namespace assay

#endif  // ASSAY_WORKER_BACKEND_CUDA_EMULATED_SESSION_H_
