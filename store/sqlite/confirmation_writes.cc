// The second run of what would rank first: made with the completion of the first, and written back
// to it with its own.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "store/confirmation.h"
#include "store/sqlite/writes.h"

namespace assay {
namespace {

// Whether nothing that is settled stands before a result of this time.
absl::StatusOr<bool> WouldStandFirst(WriteContext& context, const EvaluationRefs& refs,
                                     const Completion& completion, const std::string& contract,
                                     const ResultRow& row) {
  ASSAY_ASSIGN_OR_RETURN(
      ScopedStatement select,
      context.db.Cached("SELECT median_ns FROM results INDEXED BY results_settled"
                        " WHERE problem_id = ?1 AND problem_version = ?2 AND workload = ?3"
                        " AND device_class = ?4 AND contract = ?5 AND level = 3 AND verdict = 1"
                        " AND suspect = 0 AND ranks = 1 AND median_ns > 0 AND confirmation > 0"
                        " ORDER BY median_ns LIMIT 1"));
  select->BindInt(1, refs.problem_id);
  select->BindInt(2, refs.problem_version);
  select->BindText(3, row.workload);
  select->BindText(4, completion.device_class);
  select->BindText(5, contract);
  ASSAY_ASSIGN_OR_RETURN(const bool found, select->Step());
  return !found || row.median_ns <= select->Double(0);
}

absl::Status SetStanding(WriteContext& context, int64_t evaluation_id, const std::string& workload,
                         bool agrees, const std::string& confirmation) {
  const std::string confirmed_by = agrees ? confirmation : std::string();
  ASSAY_ASSIGN_OR_RETURN(
      ScopedStatement update,
      context.db.Cached("UPDATE results SET confirmation = ?3, confirmed_by = ?4, ranks = ?5"
                        " WHERE evaluation_id = ?1 AND workload = ?2"));
  update->BindInt(1, evaluation_id);
  update->BindText(2, workload);
  update->BindInt(3, static_cast<int>(agrees ? Standing::kConfirmed : Standing::kOpen));
  update->BindText(4, confirmed_by);
  update->BindInt(5, agrees ? 1 : 0);
  return update->Run();
}

}  // namespace

absl::StatusOr<std::optional<v1::Evaluation>> ConfirmIfFirst(WriteContext& context,
                                                             const LoadedEvaluation& first,
                                                             const std::vector<ResultRow>& results,
                                                             const Completion& completion) {
  const v1::Evaluation& evaluation = first.stored.evaluation;
  if (!CountsForRanks(evaluation) || evaluation.outcome().verdict() != v1::PASSED ||
      completion.device_class.empty()) {
    return std::nullopt;
  }
  ASSAY_ASSIGN_OR_RETURN(const WriteContext::KnownProblem* problem,
                         FindProblem(context, evaluation.problem()));
  if (problem == nullptr || problem->newest_version != first.refs.problem_version) {
    return std::nullopt;
  }
  bool is_first = false;
  for (const ResultRow& row : results) {
    if (!(row.median_ns > 0)) continue;
    ASSAY_ASSIGN_OR_RETURN(is_first, WouldStandFirst(context, first.refs, completion,
                                                     evaluation.outcome().contract(), row));
    if (is_first) break;
  }
  if (!is_first) return std::nullopt;
  v1::Evaluation second = MakeConfirmation(evaluation, completion.device_class, completion.time);
  ASSAY_RETURN_IF_ERROR(InsertEvaluation(context, second, second.SerializeAsString(), first.refs,
                                         /*request_id=*/"", /*request_digest=*/"")
                            .status());
  return second;
}

absl::Status SettleFirstRun(WriteContext& context, const LoadedEvaluation& second,
                            absl::Time time) {
  const v1::Evaluation& confirmation = second.stored.evaluation;
  if (confirmation.confirms().empty()) return absl::OkStatus();
  ASSAY_ASSIGN_OR_RETURN(LoadedEvaluation first, LoadEvaluation(context, confirmation.confirms()));
  // Of another version of the problem it says nothing.
  if (first.id == 0 || first.refs.problem_version != second.refs.problem_version) {
    return absl::OkStatus();
  }
  v1::Evaluation& evaluation = first.stored.evaluation;
  const std::vector<WorkloadAgreement> agreements =
      CompareRuns(evaluation.outcome(), confirmation.outcome());
  for (const WorkloadAgreement& one : agreements) {
    if (one.agreement == Agreement::kUnknown) continue;
    ASSAY_RETURN_IF_ERROR(SetStanding(context, first.id, one.workload,
                                      one.agreement == Agreement::kAgrees, confirmation.name()));
  }
  std::string note = DisputeNote(confirmation.name(), confirmation.outcome(), agreements);
  if (note.empty()) note = OpenNote(confirmation, agreements);
  if (note.empty()) return absl::OkStatus();
  AddNote(note, time, &evaluation);
  return SaveEvaluation(context, first);
}

}  // namespace assay
