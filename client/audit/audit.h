// The audit of a problem: can it tell right from wrong? Candidates whose verdict is known are made
// from the problem's own reference and from its honest candidates, judged by the service that will
// judge everyone's, and the verdicts held against what they should be. So the judge is audited too.
#ifndef ASSAY_CLIENT_AUDIT_AUDIT_H_
#define ASSAY_CLIENT_AUDIT_AUDIT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "assay/v1/evaluation.pb.h"
#include "assay/v1/problem.pb.h"

namespace assay {

// Who judges. Blocks.
class AuditJudge {
 public:
  virtual ~AuditJudge() = default;
  // Final evaluations in the order of `requests`. An error when one of them is not SUCCEEDED: the
  // infrastructure failed, and the audit says nothing.
  virtual absl::StatusOr<std::vector<v1::Evaluation>> Judge(
      const std::vector<v1::CreateEvaluationRequest>& requests) = 0;
};

struct AuditCandidate {
  std::string name;  // "candidates/avx2.cc"
  v1::Candidate candidate;
};

// What is audited. The first honest one in C++ is the plain one: its times are looked at.
struct AuditMaterial {
  v1::Problem problem;  // with digest
  std::vector<AuditCandidate> honest;
  std::vector<AuditCandidate> wrong;  // near misses
};

struct AuditOptions {
  uint64_t seed = 1;  // of the draw of mutants
  size_t mutants_max = 72;
  // Device class for device-tier candidates; empty: none is registered, and they are left out.
  std::string emulated_class;
  std::string harness_version;
  // Before each round of candidates, for people.
  std::function<void(const std::string&)> progress;
};

// A copy of the problem's folder: the problem, candidates/ and candidates_wrong/ as far as they are
// there. INVALID_ARGUMENT as of LoadProblemDirectory and LoadCandidate.
absl::StatusOr<AuditMaterial> LoadAuditMaterial(const std::string& directory);

// The steps, in order, and the families of mutants. `time` is not set. Errors are those of the
// judge.
absl::StatusOr<v1::ProblemAudit> AuditProblem(const AuditMaterial& material,
                                              const AuditOptions& options, AuditJudge* judge);

}  // namespace assay

#endif  // ASSAY_CLIENT_AUDIT_AUDIT_H_
