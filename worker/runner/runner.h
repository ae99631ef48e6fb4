// The trusted child's work: one request in, one report out. No processes and no pipes in here, so
// that tests run it with fake guests.
#ifndef ASSAY_WORKER_RUNNER_RUNNER_H_
#define ASSAY_WORKER_RUNNER_RUNNER_H_

#include <functional>

#include "base/clock.h"
#include "worker/backend/cuda/device_health.h"
#include "worker/runner/guest_source.h"

namespace assay {

namespace internal::v1 {
class RunnerProgress;
class RunnerReport;
class RunnerRequest;
}  // namespace internal::v1

// Verifies and measures every work of `request` in order and stops at the first that is wrong or
// ends a guest. A failure of the runner itself goes into report->error. Blocks. The calling thread
// is pinned to the request's core, once a preflight has used them all. `progress` is told each
// change of phase, and is called at least once a second while calls come back, never inside one.
// `health` is of the request's device, null where the machine does not tell it. A device
// query is answered without guests.
void ExecuteRunnerRequest(const internal::v1::RunnerRequest& request, GuestSource* guests,
                          Clock* clock,
                          const std::function<void(const internal::v1::RunnerProgress&)>& progress,
                          DeviceHealthSource* health, internal::v1::RunnerReport* report);

}  // namespace assay

#endif  // ASSAY_WORKER_RUNNER_RUNNER_H_
