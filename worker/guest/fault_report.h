// From what a guest left behind to the reason of its end. Pure functions.
#ifndef ASSAY_WORKER_GUEST_FAULT_REPORT_H_
#define ASSAY_WORKER_GUEST_FAULT_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "worker/guest/control_block.h"
#include "worker/guest/guest_session.h"
#include "worker/sandbox/limit.h"
#include "worker/sandbox/sandbox.h"

namespace assay {

// Where a tensor lies in the guest; 0 when it is not mapped yet.
struct TensorPlace {
  GuestBuffer buffer;
  uint64_t address = 0;
};

// What a limit of the sandbox, or a machine without memory, says of a guest's end; nullopt when
// neither ended it, and for time and output, which whoever watches the guest explains.
std::optional<GuestEnd> ExplainLimit(const LimitEvidence& evidence);

// The record is a claim: it can only say what the candidate did to itself.
GuestEnd ExplainExit(const SandboxExit& exit, const GuestFaultRecord& fault,
                     const std::vector<TensorPlace>& tensors);

// "SIGSEGV (segmentation fault)".
std::string SignalName(int signal_number);

}  // namespace assay

#endif  // ASSAY_WORKER_GUEST_FAULT_REPORT_H_
