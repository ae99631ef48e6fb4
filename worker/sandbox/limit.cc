#include "worker/sandbox/limit.h"

#include <signal.h>

namespace assay {

SandboxLimit ClassifyLimit(const LimitEvidence& evidence) {
  const auto ended_by = [&](int signal_number) {
    return evidence.exit.signal == signal_number || evidence.inner_signal == signal_number;
  };
  if (evidence.exit.memory_limit) return SandboxLimit::kMemory;
  if (evidence.exit.processes_limit) return SandboxLimit::kProcesses;
  if (evidence.timed_out) return SandboxLimit::kTime;
  if (ended_by(SIGXCPU)) return SandboxLimit::kCpu;
  if (evidence.output_over) return SandboxLimit::kOutput;
  if (ended_by(SIGXFSZ)) return SandboxLimit::kFileSize;
  if (evidence.artifact_over) return SandboxLimit::kArtifactSize;
  return SandboxLimit::kNone;
}

}  // namespace assay
