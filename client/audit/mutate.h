// Wrong programs made from right ones: each mutant is its source with one small change, as a slip
// of a programmer or a cheaper arithmetic would make it. Works on tokens, so some mutants do not
// compile; they count for nothing. Pure functions, deterministic.
#ifndef ASSAY_CLIENT_AUDIT_MUTATE_H_
#define ASSAY_CLIENT_AUDIT_MUTATE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// Families, in the order of reports.
inline constexpr const char* kMutantFamilies[] = {"operator",  "boundary",    "dropped",
                                                  "index",     "accumulator", "constant",
                                                  "precision", "universal"};

struct Mutation {
  std::string family;
  std::string what;    // "line 12: `<` becomes `<=`"
  std::string source;  // the whole text, changed
  // The deletion of a whole statement.
  bool is_deletion = false;
};

struct MutateOptions {
  // Names of the problem's axes: one may stand where another should.
  std::vector<std::string> axes;
  // Functions of kRoundingHelpers that results are passed through, e.g. "audit_bf16".
  std::vector<std::string> roundings;
};

// All mutations of `source`, in the order of the text. Only bodies of functions are changed.
std::vector<Mutation> FindMutations(std::string_view source, const MutateOptions& options);

// Defines audit_f32, audit_tf32, audit_bf16 and audit_f16 for float and double. Stands before the
// source of a mutation of family "precision".
extern const char kRoundingHelpers[];

// At most `count_max` of `mutations`, evenly over the families, drawn by `seed`, in the order of
// families.
std::vector<Mutation> SampleMutations(std::vector<Mutation> mutations, size_t count_max,
                                      uint64_t seed);

// `source` in a namespace of its own, so that two versions stand in one program: includes stay
// outside, functions lose their C linkage.
std::string Enclose(std::string_view source, std::string_view name_space);

}  // namespace assay

#endif  // ASSAY_CLIENT_AUDIT_MUTATE_H_
