// Where the pipeline takes its runners from.
#ifndef ASSAY_WORKER_AGENT_RUNNER_SOURCE_H_
#define ASSAY_WORKER_AGENT_RUNNER_SOURCE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "worker/runner/runner_client.h"

namespace assay {

// Thread-safe.
class RunnerSource {
 public:
  virtual ~RunnerSource() = default;
  // A fresh runner that waits for its request. Blocks while one starts.
  virtual absl::StatusOr<std::unique_ptr<RunnerClient>> Take() = 0;
  // Lets runners be started ahead in the background. Not called while something is measured.
  // Each starts with `guests` guests: what the next evaluation probably needs.
  virtual void Refill(int guests) = 0;
};

}  // namespace assay

#endif  // ASSAY_WORKER_AGENT_RUNNER_SOURCE_H_
