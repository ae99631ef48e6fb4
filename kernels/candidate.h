// Candidates as files: a folder with candidate.textproto, or one source with the same text in its
// leading comment.
#ifndef ASSAY_KERNELS_CANDIDATE_H_
#define ASSAY_KERNELS_CANDIDATE_H_

#include <string>
#include <string_view>
#include <vector>

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
// disagrees is refused with reason PROBLEM_MISMATCH. A folder holds candidate.textproto; its
// `sources` are read, or without them every source of the language, and headers come along. One
// source without the comment is admissible
// for .cc, .cpp, .cxx, .c++ when `problem` is given. Errors are INVALID_ARGUMENT with a reason
// (CANDIDATE_MALFORMED, CANDIDATE_TOO_LARGE, SOURCE_NOT_UTF8, UNKNOWN_FIELD, PROBLEM_MISMATCH,
// PROBLEM_MISSING) and name file and line; NOT_FOUND with reason PATH_NOT_FOUND.
absl::Status LoadCandidate(const std::string& path, std::string_view problem,
                           v1::Candidate* candidate);

// Whether a single source begins with the comment that makes it a candidate.
bool HasCandidateComment(std::string_view source);

// Admission check of a message that came over the wire: the same reasons. `spec.problem` must be
// set: who takes a candidate without one fills it in from the request before. Says nothing of the
// compile options beyond their form; the builder has the list of those it allows.
absl::Status ValidateCandidate(const v1::Candidate& candidate);

// What can only be checked with both at hand: the candidate is for this problem; parameters and
// workspaces take no name of an axis or tensor; launch arguments and expressions use known names;
// the contract is one of the problem's. INVALID_ARGUMENT with reason PROBLEM_MISMATCH,
// CONTRACT_UNKNOWN or CANDIDATE_MALFORMED.
absl::Status CheckCandidateAgainstProblem(const v1::Candidate& candidate,
                                          const v1::Problem& problem);

// Paths of the files that are compiled, in order: `spec.sources`, or without them every file of the
// language's kind (.cc .cpp .cxx .c++; .cu; .ptx), sorted.
std::vector<std::string> CandidateSources(const v1::Candidate& candidate);

// SHA-256 over problem name, language, sources, plan, parameters, constraints, options and the
// contract that is named; label and origin stay out.
std::string CandidateDigest(const v1::Candidate& candidate);

// SHA-256 over what CandidateDigest covers, but without comments, layout, and the names that the
// candidate itself gives to files, functions, variables and parameters: two candidates with the
// same one are copies of each other. A heuristic, which whoever changes the code itself escapes.
// Empty without files.
std::string CandidateFingerprint(const v1::Candidate& candidate);

// "candidates/" and the first 32 digits.
std::string CandidateName(std::string_view digest);

// The configuration to run: `requested`, which gives every parameter, checked against parameters
// and constraints (INVALID_ARGUMENT, reason CONFIGURATION_INVALID), or for an empty one the first
// in lexicographic order that satisfies the constraints. A constraint that divides by zero or
// overflows does not hold.
absl::StatusOr<ValueMap> ResolveConfiguration(const v1::CandidateSpec& spec,
                                              const ValueMap& requested);

}  // namespace assay

#endif  // ASSAY_KERNELS_CANDIDATE_H_
