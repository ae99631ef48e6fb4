// The candidates of an audit beside mutants: what is submitted, and what should come of it.
// Internal to the audit.
#ifndef ASSAY_CLIENT_AUDIT_CASES_H_
#define ASSAY_CLIENT_AUDIT_CASES_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "client/audit/audit.h"
#include "client/audit/generate.h"

namespace assay {

struct AuditCase {
  std::string name;
  v1::CreateEvaluationRequest request;
  v1::Evaluation evaluation;  // once judged
};

// Which workloads are named. A mutant that survives the small ones meets all of them.
enum class AuditScope {
  kSmall,  // those that cost next to nothing
  kAll,    // all but the very largest
};

struct AuditScopes {
  std::vector<std::string> small;
  std::vector<std::string> all;
  // What the outputs of the small workloads can show.
  bool has_elements = false;  // some output has two elements or more
  bool has_rows = false;      // some output has two rows or more
};
absl::StatusOr<AuditScopes> FindScopes(const v1::Problem& problem);

class CaseMaker {
 public:
  // Both outlive it.
  CaseMaker(const v1::Problem* problem, const AuditScopes* scopes)
      : problem_(problem), scopes_(scopes) {}

  // Level VERIFY on "cpu".
  AuditCase Source(std::string name, std::string source, AuditScope scope,
                   const v1::Candidate* options_of = nullptr) const;
  AuditCase Candidate(const AuditCandidate& candidate, v1::Level level,
                      const std::string& device_class, AuditScope scope) const;

 private:
  AuditCase Wrap(std::string name, v1::Candidate candidate, AuditScope scope) const;

  const v1::Problem* const problem_;
  const AuditScopes* const scopes_;
};

// Programs that compute nothing, or hardly anything; all must be rejected.
std::vector<AuditCase> TrivialCases(const v1::Problem& problem, const std::string& reference,
                                    const AuditScopes& scopes, const CaseMaker& maker);

// The reference on inputs of which one is changed in one place, or with another value of an axis;
// all must be rejected. `reflect`: the first of two ways to change an element.
std::vector<AuditCase> SensitivityCases(const v1::Problem& problem, const std::string& reference,
                                        bool reflect, const CaseMaker& maker);
std::vector<AuditCase> AxisCases(const v1::Problem& problem, const std::string& reference,
                                 const CaseMaker& maker);

// Results that are off by a part, or by a multiple, of the tolerance.
struct LivenessCases {
  std::vector<AuditCase> accept;
  std::vector<AuditCase> reject;
};
LivenessCases MakeLivenessCases(const v1::Problem& problem, const std::string& reference,
                                const CaseMaker& maker);

// Ways to spoil what the reference computes: families "universal" and "precision".
struct Spoiler {
  std::string family;
  std::string what;
  std::string before;  // as in Version
  std::string after;
  // Small by its making, or as one value happens to be: need not be off by several tolerances.
  bool is_slight = false;
};
std::vector<Spoiler> Spoilers(const v1::Problem& problem);

// Names of kRoundingHelpers that no honest candidate of the first contract may use.
std::vector<std::string> ForbiddenRoundings(const v1::Problem& problem);

}  // namespace assay

#endif  // ASSAY_CLIENT_AUDIT_CASES_H_
