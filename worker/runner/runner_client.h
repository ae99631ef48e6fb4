// The worker's side of a runner: one fresh trusted process an evaluation (or a part of one).
#ifndef ASSAY_WORKER_RUNNER_RUNNER_CLIENT_H_
#define ASSAY_WORKER_RUNNER_RUNNER_CLIENT_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace assay {

namespace internal::v1 {
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
};

// A runner that was started ahead, with its guests, and waits for its one request. Not thread-safe.
class RunnerClient {
 public:
  static absl::StatusOr<std::unique_ptr<RunnerClient>> Start(const RunnerOptions& options);
  virtual ~RunnerClient() = default;  // kills what is left
  // Blocks. A bad status is the infrastructure's. `keep_going` is asked several times a second;
  // false kills the runner and gives CANCELLED.
  virtual absl::StatusOr<std::unique_ptr<internal::v1::RunnerReport>> Run(
      const internal::v1::RunnerRequest& request, absl::Duration timeout,
      const std::function<bool()>& keep_going) = 0;
};

}  // namespace assay

#endif  // ASSAY_WORKER_RUNNER_RUNNER_CLIENT_H_
