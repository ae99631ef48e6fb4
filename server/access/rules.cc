#include "server/access/rules.h"

namespace assay {
namespace {

// Reflection and health checks have no row: what they tell (the public API, and whether the server
// serves) is no secret, and load balancers have no tokens.
constexpr AccessRule kRules[] = {
    {"assay.v1.ProblemService", "GetProblem", AccessScope::kRead},
    {"assay.v1.ProblemService", "ListProblems", AccessScope::kRead},
    {"assay.v1.ProblemService", "CreateProblem", AccessScope::kAdmin},
    {"assay.v1.ProblemService", "RecordProblemAudit", AccessScope::kAdmin},
    {"assay.v1.CandidateService", "CreateCandidate", AccessScope::kSubmit},
    {"assay.v1.CandidateService", "GetCandidate", AccessScope::kRead},
    {"assay.v1.CandidateService", "ListCandidates", AccessScope::kRead},
    {"assay.v1.EvaluationService", "CreateEvaluation", AccessScope::kSubmit},
    {"assay.v1.EvaluationService", "BatchCreateEvaluations", AccessScope::kSubmit},
    {"assay.v1.EvaluationService", "GetEvaluation", AccessScope::kRead},
    {"assay.v1.EvaluationService", "ListEvaluations", AccessScope::kRead},
    // Of one's own; of others' it asks for ADMIN itself.
    {"assay.v1.EvaluationService", "CancelEvaluation", AccessScope::kSubmit},
    {"assay.v1.EvaluationService", "WatchEvaluation", AccessScope::kRead},
    {"assay.v1.LeaderboardService", "GetLeaderboard", AccessScope::kRead},
    {"assay.v1.FleetService", "ListWorkers", AccessScope::kRead},
    {"assay.v1.FleetService", "GetWorker", AccessScope::kRead},
    {"assay.v1.FleetService", "DrainWorker", AccessScope::kAdmin},
    {"assay.v1.FleetService", "UndrainWorker", AccessScope::kAdmin},
    {"assay.v1.AccessService", "CreateToken", AccessScope::kAdmin},
    {"assay.v1.AccessService", "ListTokens", AccessScope::kAdmin},
    {"assay.v1.AccessService", "RevokeToken", AccessScope::kAdmin},
    {"assay.v1.AccessService", "ListAccessEvents", AccessScope::kAdmin},
    {"assay.internal.v1.DispatchService", "RegisterWorker", AccessScope::kWork},
    {"assay.internal.v1.DispatchService", "AcquireLease", AccessScope::kWork},
    {"assay.internal.v1.DispatchService", "RenewLease", AccessScope::kWork},
    {"assay.internal.v1.DispatchService", "CompleteLease", AccessScope::kWork},
    {"assay.internal.v1.DispatchService", "AbandonLease", AccessScope::kWork},
};

}  // namespace

absl::Span<const AccessRule> AccessRules() { return kRules; }

const AccessRule* FindAccessRule(std::string_view method) {
  for (const AccessRule& rule : kRules) {
    if (method == rule.method) return &rule;
  }
  return nullptr;
}

const char* AccessScopeName(AccessScope scope) {
  switch (scope) {
    case AccessScope::kRead:
      return "READ";
    case AccessScope::kSubmit:
      return "SUBMIT";
    case AccessScope::kAdmin:
      return "ADMIN";
    case AccessScope::kWork:
      return "WORK";
  }
  return "ADMIN";
}

}  // namespace assay
