// Launch plans with numbers in them: what a device-tier candidate launches for one workload and one
// configuration, checked against every limit before a driver sees it.
//
// Pure functions over plain data; thread-safe.
#ifndef ASSAY_KERNELS_PLAN_PLAN_H_
#define ASSAY_KERNELS_PLAN_PLAN_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/limits.h"
#include "kernels/expression/expression.h"
#include "kernels/problem.h"

namespace assay {

namespace v1 {
class CandidateSpec;
}  // namespace v1

// One parameter of a kernel as its PTX declares it.
struct KernelParameter {
  std::string name;
  std::string type;         // fundamental type of PTX without the dot: "u64", "b32", "f32"
  int64_t bytes = 0;        // of all elements where it is an array
  bool is_pointer = false;  // `.ptr`, which only some compilers write
};

// What is known of one entry point before it is launched.
struct KernelSignature {
  std::string name;
  std::vector<KernelParameter> parameters;
  int64_t static_shared_bytes = 0;
  int64_t block_threads_max = 0;                      // .maxntid, all dimensions; 0: not given
  std::array<int64_t, 3> required_block = {0, 0, 0};  // .reqntid; 0: not given
};

// What a device takes. The defaults are those of every device of compute capability 7.0 or more.
struct PlanLimits {
  std::array<int64_t, 3> grid_max = {2147483647, 65535, 65535};
  std::array<int64_t, 3> block_max = {1024, 1024, 64};
  int64_t block_threads_max = 1024;
  int64_t shared_bytes_max = 48 << 10;  // of one block, static and dynamic, with the opt-in
  int64_t workspace_bytes_max = limits::kPlanWorkspaceBytesMax;  // of all workspaces
};

struct PlanArgument {
  enum class Kind : uint8_t { kTensor, kWorkspace, kInteger };
  Kind kind = Kind::kInteger;
  int index = 0;      // of a tensor in ResolvedWorkload::tensors, of a workspace in ResolvedPlan
  uint64_t bits = 0;  // of an integer: two's complement, the low `bytes` bytes count
  int bytes = 8;      // as the kernel declares it
};

struct ResolvedLaunch {
  std::string kernel;
  std::array<uint32_t, 3> grid = {1, 1, 1};
  std::array<uint32_t, 3> block = {1, 1, 1};
  int64_t shared_bytes = 0;  // dynamic
  std::vector<PlanArgument> arguments;
};

struct ResolvedWorkspace {
  std::string name;
  int64_t bytes = 0;  // may be 0
};

struct ResolvedPlan {
  std::vector<ResolvedWorkspace> workspaces;
  std::vector<ResolvedLaunch> launches;
};

// Puts the workload's axes and the configuration into the plan of `spec`, which passed
// ValidateCandidate and CheckCandidateAgainstProblem. `kernels` are the entry points of the built
// candidate.
//
// INVALID_ARGUMENT names launch, field, expression and value, with reason
//   PLAN_INVALID            an expression does not parse, overflows, divides by zero, uses an
//                           unknown name, or gives an extent below 1 or a size below 0;
//   PLAN_OVER_LIMIT         grid, block, shared memory or workspaces are larger than `limits` or
//                           than what the kernel declares;
//   KERNEL_NOT_FOUND        the candidate has no such entry point; the message lists those it has;
//   PLAN_ARGUMENT_MISMATCH  number, kind, width or range of the arguments does not fit the kernel.
absl::StatusOr<ResolvedPlan> ResolvePlan(const v1::CandidateSpec& spec,
                                         const ResolvedWorkload& workload,
                                         const ValueMap& configuration, const PlanLimits& limits,
                                         const std::vector<KernelSignature>& kernels);

}  // namespace assay

#endif  // ASSAY_KERNELS_PLAN_PLAN_H_
