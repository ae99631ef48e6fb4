// Sources of candidates whose verdict is known, made from a problem's reference. Pure functions.
#ifndef ASSAY_CLIENT_AUDIT_GENERATE_H_
#define ASSAY_CLIENT_AUDIT_GENERATE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace assay {

namespace v1 {
class Problem;
class Tensor;
class TolerancePolicy;
}  // namespace v1

extern const char kPreludeIncludes[];
extern const char kPrelude[];

// Source of the problem's reference. INVALID_ARGUMENT when it is not among the files.
absl::StatusOr<std::string> ReferenceSource(const v1::Problem& problem);

// Tolerance of an output under the problem's first arithmetic contract.
const v1::TolerancePolicy& ToleranceOf(const v1::Problem& problem, const v1::Tensor& tensor);

// The reference as a candidate: its results, rounded to the outputs' types.
std::string OracleSource(const v1::Problem& problem, std::string_view reference);

// The reference as a candidate whose body is `run`: statements over
//   t        tensors, inputs then outputs, as the caller gave them
//   a        values of the axes
//   right    outputs that the reference has computed from the inputs as they are
// and everything of kPrelude. `right` is computed only if `run` names it.
std::string WrapperSource(const v1::Problem& problem, std::string_view reference,
                          std::string_view run);

// A program that is one of two versions of a function, which differ in one place.
struct Version {
  std::string source;
  bool is_reference = false;  // it is PROBLEM_reference, with its wide outputs
  // Statements over `t`, `a` and `o`, the computed outputs, that spoil them or the inputs. Empty:
  // none.
  std::string before;
  std::string after;
};

// The spoilt version alone, as a candidate.
std::string MutantSource(const v1::Problem& problem, const Version& version);

// Runs both versions, gives the results of `original`, and NaN (of integers: other bits) wherever
// those of `mutant` differ by more than `honest`, which has the largest honest error of every
// output in the order of the problem; where the output is BITWISE or `exact`, wherever a bit
// differs. If it passes, the two are the same program as far as any verified input can show.
std::string WitnessSource(const v1::Problem& problem, const Version& original,
                          const Version& mutant, const std::vector<double>& honest, bool exact);

}  // namespace assay

#endif  // ASSAY_CLIENT_AUDIT_GENERATE_H_
