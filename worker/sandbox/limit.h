// Which limit of a sandbox a run met. Pure.
#ifndef ASSAY_WORKER_SANDBOX_LIMIT_H_
#define ASSAY_WORKER_SANDBOX_LIMIT_H_

#include "worker/sandbox/sandbox.h"

namespace assay {

// In the order in which they are believed: what the kernel counted, then the clock, then how the
// command ended, then what was seen of its output. An exit code alone proves nothing.
enum class SandboxLimit {
  kNone,
  kMemory,
  kProcesses,
  kTime,
  kCpu,
  kOutput,
  kFileSize,
  kArtifactSize,
};

// What is known of a run that did not give what it should have.
struct LimitEvidence {
  SandboxExit exit;
  bool timed_out = false;      // killed for its time on the wall clock
  bool output_over = false;    // killed for what it printed
  bool artifact_over = false;  // killed for what it handed over
  // Of a program that the command had started, where the command says so; 0: nothing said.
  int inner_signal = 0;
};

// The first limit, in the order above, that the evidence shows. A machine without memory
// (SandboxExit::machine_oom) is no limit.
SandboxLimit ClassifyLimit(const LimitEvidence& evidence);

}  // namespace assay

#endif  // ASSAY_WORKER_SANDBOX_LIMIT_H_
