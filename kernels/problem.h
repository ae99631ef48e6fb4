// The problem side, without protos in headers: a checked view of assay.v1.Problem, ready to use.
#ifndef ASSAY_KERNELS_PROBLEM_H_
#define ASSAY_KERNELS_PROBLEM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/expression/expression.h"

namespace assay {

namespace v1 {
class Problem;
class ProblemAudit;
class Workload;
class WorkloadSelector;
}  // namespace v1

// Values as in assay.v1.DataType.
enum class DataType { kF32 = 1, kF64 = 2, kI8 = 3, kU8 = 4, kI32 = 5, kF16 = 6, kBF16 = 7 };

// Bytes of one element.
size_t DataTypeSize(DataType dtype);
// The C++ type in a candidate's prototype: "float", "double", "int8_t", "uint8_t", "int32_t",
// "uint16_t".
std::string_view DataTypeCpp(DataType dtype);

// A tensor of one workload.
struct TensorShape {
  std::string name;
  DataType dtype = DataType::kF32;
  bool is_output = false;
  std::vector<int64_t> dims;  // outermost first, all > 0
  int64_t elements = 0;
  int64_t bytes = 0;
  // Bytes of one element of the reference's output: 8 for SCALED (double), the dtype's size for
  // BITWISE; 0 for inputs.
  int64_t reference_element_bytes = 0;
};

// A workload with all axes checked and all shapes computed. Inputs first, then outputs, each in the
// problem's order: the order of the candidate's arguments.
struct ResolvedWorkload {
  std::string
      name;  // the problem's name for it, or "axis=value,..." in the problem's order of axes
  ValueMap axes;
  std::vector<int64_t> axis_values;  // in the problem's order
  std::vector<TensorShape> tensors;
  bool verify_only = false;
};

// Everything that can be said of a problem's message alone. INVALID_ARGUMENT names the field and
// says what to do: names (also that no two of axes and tensors clash), dtypes, shapes,
// distributions for every input, tolerance for every output, expressions that parse and use known
// names, transforms that name known tensors and dimensions, sources that exist with safe paths,
// workloads that resolve, at least one measured workload, sizes within limits.
absl::Status ValidateProblem(const v1::Problem& problem);

// SHA-256 of the contract and its sources; the output-only fields and `summary` stay out.
std::string ProblemDigest(const v1::Problem& problem);

// Reads `directory`/problem.textproto and the files that it names (reference, baselines) into
// `files`, validates, and sets `digest`. `name` may stand without "problems/". Errors name file and
// line.
absl::Status LoadProblemDirectory(const std::string& directory, v1::Problem* problem);

// Reads `directory`/audit.textproto, the committed audit of the problem in that folder; NOT_FOUND
// when there is none. Says nothing of whether it is of the problem's present content.
absl::Status LoadProblemAudit(const std::string& directory, v1::ProblemAudit* audit);

// INVALID_ARGUMENT when an axis is missing, unknown or out of range, a constraint fails, a size
// passes the limits, or a distribution does not fit its type.
absl::StatusOr<ResolvedWorkload> ResolveWorkload(const v1::Problem& problem,
                                                 const v1::Workload& workload);

// By name (NOT_FOUND with reason WORKLOAD_NOT_FOUND lists the known ones) or by axes.
absl::StatusOr<ResolvedWorkload> ResolveSelector(const v1::Problem& problem,
                                                 const v1::WorkloadSelector& selector);

// "name" or "axis=value,axis=value", as on the command line.
absl::Status ParseWorkloadSelector(std::string_view text, v1::WorkloadSelector* selector);

// The C++ header that is put before a candidate's source: <cstdint> and
//   extern "C" void PROBLEM(const float* a, ..., float* c, ..., int64_t n, ...);
std::string CandidatePrototype(const v1::Problem& problem);

// A translation unit that defines, over the candidate's prototype,
//   extern "C" void assay_invoke(void* const* tensors, const int64_t* axes);
// which calls the function with tensors and axes in the order of ResolvedWorkload. The same for a
// reference with `reference` set, where the function is PROBLEM_reference and SCALED outputs are
// double*.
std::string InvokeSource(const v1::Problem& problem, bool reference);

// The header put before the reference's source.
std::string ReferencePrototype(const v1::Problem& problem);

// "gelu" of "problems/gelu" or "gelu".
std::string ProblemId(std::string_view name);

// What the workload costs at least.
struct WorkCost {
  // Values as in assay.v1.WorkModel.Unit.
  int unit = 0;
  double operations = 0;
  double bytes_read = 0;
  double bytes_written = 0;
  double footprint_bytes = 0;  // of all tensors
  // Operations a byte of compulsory traffic; 0 without any.
  double intensity() const {
    const double bytes = bytes_read + bytes_written;
    return bytes > 0 ? operations / bytes : 0;
  }
};
absl::StatusOr<WorkCost> ComputeWorkCost(const v1::Problem& problem,
                                         const ResolvedWorkload& workload);

}  // namespace assay

#endif  // ASSAY_KERNELS_PROBLEM_H_
