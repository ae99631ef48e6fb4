// The worker's side of a runner: one fresh trusted process an evaluation (or a part of one).
#ifndef ASSAY_WORKER_RUNNER_RUNNER_CLIENT_H_
#define ASSAY_WORKER_RUNNER_RUNNER_CLIENT_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace assay {

namespace internal::v1 {
class RunnerProgress;
class RunnerReport;
class RunnerRequest;
}  // namespace internal::v1

struct RunnerOptions {
  std::string runner_binary;
  std::string guest_binary;
  int slot = 0;         // unique among live runners of the machine
  int guests = 2;       // that it starts ahead
  int guest_core = -1;  // where the guests that it starts ahead are pinned; -1: nowhere
  bool allow_unsandboxed = false;
  // Runs when nothing else wants the cores: for runners that never measure beside those that do.
  bool background = false;
  Clock* clock = SystemClock();
};

// What a run tells and asks meanwhile.
struct RunnerHooks {
  std::function<bool()> keep_going;  // asked several times a second
  std::function<void(const internal::v1::RunnerProgress&)> on_progress;
};

// A runner that was started ahead, with its guests, and waits for its one request. Not thread-safe.
class RunnerClient {
 public:
  static absl::StatusOr<std::unique_ptr<RunnerClient>> Start(const RunnerOptions& options);
  virtual ~RunnerClient() = default;  // kills what is left
  // Blocks. A bad status is the infrastructure's: CANCELLED when keep_going said false,
  // DEADLINE_EXCEEDED when a runner that still shows life has no report after `timeout`,
  // UNAVAILABLE (RUNNER_SILENT) when it shows none for limits::kRunnerSilentSeconds; UNAVAILABLE
  // (RUNNER_STARVED) instead of DEADLINE_EXCEEDED for one in the background that had no core for
  // most of the time.
  virtual absl::StatusOr<std::unique_ptr<internal::v1::RunnerReport>> Run(
      const internal::v1::RunnerRequest& request, absl::Duration timeout,
      const RunnerHooks& hooks) = 0;
};

}  // namespace assay

#endif  // ASSAY_WORKER_RUNNER_RUNNER_CLIENT_H_
