// Candidates as files: a folder with candidate.textproto, or one source with the same text in its
// leading comment.
#ifndef ASSAY_KERNELS_CANDIDATE_H_
#define ASSAY_KERNELS_CANDIDATE_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/expression/expression.h"

namespace assay {

namespace v1 {
class Candidate;
class CandidateSpec;
class Problem;
}  // namespace v1

// Reads `path`. `problem` is what --problem named ("" when it was not given); a comment that
// disagrees is refused with reason PROBLEM_MISMATCH. One source without the comment is admissible
// for .cc, .cpp, .cxx, .c++ when `problem` is given. Errors are INVALID_ARGUMENT with a reason
// (CANDIDATE_MALFORMED, CANDIDATE_TOO_LARGE, SOURCE_NOT_UTF8, UNKNOWN_FIELD, PROBLEM_MISMATCH,
// PROBLEM_MISSING) and name file and line; NOT_FOUND with reason PATH_NOT_FOUND.
absl::Status LoadCandidate(const std::string& path, std::string_view problem,
                           v1::Candidate* candidate);

// Admission check of a message that came over the wire: the same reasons.
absl::Status ValidateCandidate(const v1::Candidate& candidate);

// SHA-256 over problem name, language, sources, plan, parameters, constraints and options; label
// and origin stay out.
std::string CandidateDigest(const v1::Candidate& candidate);

// "candidates/" and the first 32 digits.
std::string CandidateName(std::string_view digest);

// The configuration to run: `requested` checked against parameters and constraints
// (INVALID_ARGUMENT, reason CONFIGURATION_INVALID), or for an empty one the first in lexicographic
// order that satisfies the constraints.
absl::StatusOr<ValueMap> ResolveConfiguration(const v1::CandidateSpec& spec,
                                              const ValueMap& requested);

}  // namespace assay

#endif  // ASSAY_KERNELS_CANDIDATE_H_
