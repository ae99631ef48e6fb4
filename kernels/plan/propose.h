// Proposes a launch plan for a plain .cu file, so that its author need not write one. Pure;
// thread-safe.
#ifndef ASSAY_KERNELS_PLAN_PROPOSE_H_
#define ASSAY_KERNELS_PLAN_PROPOSE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace assay {

namespace v1 {
class Problem;
}  // namespace v1

struct PlanProposal {
  std::string kernel;
  // `plan { ... }` as candidate.textproto has it.
  std::string plan;
  // The whole leading comment, with problem and language, to be put before the source.
  std::string comment;
  // What was assumed and should be looked at, one sentence each; empty when all was matched by
  // name.
  std::vector<std::string> notes;
};

// `source` has exactly one `extern "C" __global__` kernel. Pointers are matched with tensors by
// name, then by order among inputs (const) and outputs; integers with axes by name, then as the
// element count, then by order. A block has 256 threads or what __launch_bounds__ says; the grid
// covers the elements of the first output, or has a block for each of its rows where the kernel
// uses blockIdx.x as an index.
//
// INVALID_ARGUMENT with reason PLAN_NOT_PROPOSED says what stands in the way and what to write
// instead. The proposal is a guess that builds and launches; whether it is right, an evaluation
// says.
absl::StatusOr<PlanProposal> ProposePlan(std::string_view source, const v1::Problem& problem);

}  // namespace assay

#endif  // ASSAY_KERNELS_PLAN_PROPOSE_H_
