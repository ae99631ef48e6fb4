// Leases, completions, ends of attempts and cancels: changes of one stored evaluation.

#include <bit>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "store/confirmation.h"
#include "store/sqlite/reads.h"
#include "store/sqlite/writes.h"
#include "store/transitions.h"

namespace assay {
namespace {

static_assert(std::endian::native == std::endian::little, "samples are stored little-endian");

std::string PackDoubles(const google::protobuf::RepeatedField<double>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     static_cast<size_t>(values.size()) * sizeof(double));
}

// A transition of one evaluation whose result is the evaluation.
class ChangeEvaluation : public ResultOperation<v1::Evaluation> {
 public:
  ChangeEvaluation(std::string name, StoreDone<v1::Evaluation> done)
      : ResultOperation(std::move(done)), name_(std::move(name)) {}

 protected:
  // OK or a refusal goes to `refusal`; the status is one of SQL.
  virtual absl::Status Change(WriteContext& context, LoadedEvaluation* loaded,
                              absl::Status* refusal) = 0;

  absl::Status ApplyTo(WriteContext& context, absl::StatusOr<v1::Evaluation>* result) override {
    ASSAY_ASSIGN_OR_RETURN(LoadedEvaluation loaded, LoadEvaluation(context, name_));
    if (loaded.id == 0) {
      *result = NotFound("EVALUATION_NOT_FOUND", name_);
      return absl::OkStatus();
    }
    absl::Status refusal;
    ASSAY_RETURN_IF_ERROR(Change(context, &loaded, &refusal));
    if (!refusal.ok()) {
      *result = std::move(refusal);
      return absl::OkStatus();
    }
    ASSAY_RETURN_IF_ERROR(SaveEvaluation(context, loaded));
    *result = std::move(loaded.stored.evaluation);
    return absl::OkStatus();
  }

 private:
  const std::string name_;
};

class RecordLease : public ChangeEvaluation {
 public:
  RecordLease(LeaseGrant grant, StoreDone<v1::Evaluation> done)
      : ChangeEvaluation(grant.evaluation, std::move(done)), grant_(std::move(grant)) {}

 protected:
  absl::Status Change(WriteContext& context, LoadedEvaluation* loaded,
                      absl::Status* refusal) override {
    *refusal = ApplyLease(grant_, &loaded->stored);
    if (!refusal->ok()) return absl::OkStatus();
    const std::string& problem = loaded->stored.evaluation.problem();
    if (grant_.problem_version == 0) {
      ASSAY_ASSIGN_OR_RETURN(const WriteContext::KnownProblem* known,
                             FindProblem(context, problem));
      if (known != nullptr) loaded->refs.problem_version = known->newest_version;
      return absl::OkStatus();
    }
    ASSAY_ASSIGN_OR_RETURN(
        ScopedStatement select,
        context.db.Cached("SELECT 1 FROM problem_versions WHERE problem_id = ?1 AND version = ?2"));
    select->BindInt(1, loaded->refs.problem_id);
    select->BindInt(2, grant_.problem_version);
    ASSAY_ASSIGN_OR_RETURN(const bool exists, select->Step());
    if (!exists) {
      *refusal =
          NotFound("PROBLEM_NOT_FOUND", absl::StrCat(problem, " version ", grant_.problem_version));
    }
    loaded->refs.problem_version = grant_.problem_version;
    return absl::OkStatus();
  }

 private:
  const LeaseGrant grant_;
};

class RecordAttemptEnd : public ChangeEvaluation {
 public:
  RecordAttemptEnd(AttemptEnd end, StoreDone<v1::Evaluation> done)
      : ChangeEvaluation(end.evaluation, std::move(done)), end_(std::move(end)) {}

 protected:
  absl::Status Change(WriteContext& context, LoadedEvaluation* loaded,
                      absl::Status* refusal) override {
    *refusal = ApplyAttemptEnd(end_, &loaded->stored);
    if (!refusal->ok() || !end_.final) return absl::OkStatus();
    return SettleFirstRun(context, *loaded, end_.time);
  }

 private:
  const AttemptEnd end_;
};

class RecordCancel : public ChangeEvaluation {
 public:
  RecordCancel(std::string name, absl::Time time, StoreDone<v1::Evaluation> done)
      : ChangeEvaluation(std::move(name), std::move(done)), time_(time) {}

 protected:
  absl::Status Change(WriteContext& context, LoadedEvaluation* loaded,
                      absl::Status* refusal) override {
    *refusal = ApplyCancel(time_, &loaded->stored);
    if (!refusal->ok()) return absl::OkStatus();
    return SettleFirstRun(context, *loaded, time_);
  }

 private:
  const absl::Time time_;
};

class RecordCompletion : public ResultOperation<CompletionRecord> {
 public:
  RecordCompletion(Completion completion, StoreDone<CompletionRecord> done)
      : ResultOperation(std::move(done)),
        parts_(SplitOutcome(std::move(completion.outcome))),
        completion_(std::move(completion)),
        results_(ResultRows(parts_.outcome)) {
    samples_.reserve(parts_.runners.size());
    for (OutcomeParts::Runner& runner : parts_.runners) samples_.emplace_back(std::move(runner));
  }
  size_t rows() const override { return 1 + samples_.size() + results_.size(); }

 protected:
  absl::Status ApplyTo(WriteContext& context, absl::StatusOr<CompletionRecord>* result) override;

 private:
  absl::Status SaveIdentity(WriteContext& context, const LoadedEvaluation& loaded);
  absl::Status InsertResults(WriteContext& context, const LoadedEvaluation& loaded);

  OutcomeParts parts_;
  const Completion completion_;
  const std::vector<ResultRow> results_;
  std::vector<SampleRow> samples_;
};

absl::Status RecordCompletion::ApplyTo(WriteContext& context,
                                       absl::StatusOr<CompletionRecord>* result) {
  ASSAY_ASSIGN_OR_RETURN(LoadedEvaluation loaded, LoadEvaluation(context, completion_.evaluation));
  if (loaded.id == 0) {
    *result = NotFound("EVALUATION_NOT_FOUND", completion_.evaluation);
    return absl::OkStatus();
  }
  absl::StatusOr<bool> changed = ApplyCompletion(completion_, parts_.outcome, &loaded.stored);
  if (!changed.ok()) {
    *result = changed.status();
    return absl::OkStatus();
  }
  if (!*changed) {
    ASSAY_ASSIGN_OR_RETURN(v1::Evaluation evaluation, ReadEvaluationById(context.db, loaded.id));
    // Whoever recorded it may not have heard of the second run.
    ASSAY_ASSIGN_OR_RETURN(LoadedEvaluation second,
                           LoadEvaluation(context, ConfirmationName(evaluation.name())));
    CompletionRecord record{/*already_recorded=*/true, std::move(evaluation), std::nullopt};
    if (second.id != 0) record.confirmation = std::move(second.stored.evaluation);
    *result = std::move(record);
    return absl::OkStatus();
  }
  ASSAY_RETURN_IF_ERROR(SaveEvaluation(context, loaded));
  ASSAY_RETURN_IF_ERROR(SaveIdentity(context, loaded));
  ASSAY_RETURN_IF_ERROR(InsertLogs(context, loaded.id, parts_.build_log, parts_.output_log));
  ASSAY_RETURN_IF_ERROR(InsertSamples(context, loaded.id, samples_));
  ASSAY_RETURN_IF_ERROR(InsertResults(context, loaded));
  CompletionRecord record;
  v1::Evaluation& evaluation = loaded.stored.evaluation;
  ASSAY_RETURN_IF_ERROR(SettleFirstRun(context, loaded, completion_.time));
  if (completion_.may_confirm && !IsSuspect(parts_.outcome)) {
    ASSAY_ASSIGN_OR_RETURN(record.confirmation,
                           ConfirmIfFirst(context, loaded, results_, completion_));
  }
  AddLogs(parts_.build_log, parts_.output_log, evaluation.mutable_outcome());
  record.evaluation = std::move(evaluation);
  *result = std::move(record);
  return absl::OkStatus();
}

absl::Status RecordCompletion::SaveIdentity(WriteContext& context, const LoadedEvaluation& loaded) {
  ASSAY_ASSIGN_OR_RETURN(
      ScopedStatement update,
      context.db.Cached(
          "UPDATE evaluations SET identity = ?2, ran_device_class = ?3 WHERE id = ?1"));
  update->BindInt(1, loaded.id);
  update->BindTextOrNull(2, completion_.identity);
  update->BindTextOrNull(3, completion_.device_class);
  return update->Run();
}

void BindMeasured(Statement& statement, int index, double value) {
  value == 0 ? statement.BindNull(index) : statement.BindDouble(index, value);
}

absl::Status RecordCompletion::InsertResults(WriteContext& context,
                                             const LoadedEvaluation& loaded) {
  const bool suspect = IsSuspect(parts_.outcome);
  for (size_t i = 0; i < results_.size(); ++i) {
    const ResultRow& row = results_[i];
    ASSAY_ASSIGN_OR_RETURN(
        ScopedStatement insert,
        context.db.Cached(
            "INSERT INTO results (evaluation_id, workload_index, problem_id, problem_version,"
            " workload, device_class, candidate_id, level, verdict, suspect, median_ns, q1_ns,"
            " q3_ns, efficiency_ratio, bound, runner_spread_ratio, baseline, speedup_ratio,"
            " complete_time, contract, ranks, confirmation) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7,"
            " ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22)"));
    insert->BindInt(1, loaded.id);
    insert->BindInt(2, static_cast<int64_t>(i));
    insert->BindInt(3, loaded.refs.problem_id);
    insert->BindInt(4, loaded.refs.problem_version);
    insert->BindText(5, row.workload);
    insert->BindText(6, completion_.device_class);
    insert->BindInt(7, loaded.refs.candidate_id);
    insert->BindInt(8, loaded.stored.evaluation.level());
    insert->BindInt(9, parts_.outcome.verdict());
    insert->BindInt(10, suspect ? 1 : 0);
    BindMeasured(*insert, 11, row.median_ns);
    BindMeasured(*insert, 12, row.q1_ns);
    BindMeasured(*insert, 13, row.q3_ns);
    BindMeasured(*insert, 14, row.efficiency_ratio);
    insert->BindText(15, row.bound);
    // A spread of 0 is a measured one.
    row.median_ns == 0 ? insert->BindNull(16) : insert->BindDouble(16, row.runner_spread_ratio);
    insert->BindText(17, row.baseline);
    BindMeasured(*insert, 18, row.speedup_ratio);
    insert->BindInt(19, absl::ToUnixNanos(completion_.time));
    insert->BindText(20, parts_.outcome.contract());
    // Without a class there is no board.
    const bool ranks =
        CountsForRanks(loaded.stored.evaluation) && !completion_.device_class.empty();
    insert->BindInt(21, ranks ? 1 : 0);
    insert->BindInt(22, static_cast<int>(Standing::kOpen));
    ASSAY_RETURN_IF_ERROR(insert->Run());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LoadedEvaluation> LoadEvaluation(WriteContext& context, std::string_view name) {
  LoadedEvaluation loaded;
  ASSAY_ASSIGN_OR_RETURN(ScopedStatement select,
                         context.db.Cached("SELECT id, problem_id, problem_version, candidate_id,"
                                           " COALESCE(baseline_candidate_id, 0), fence, proto"
                                           " FROM evaluations WHERE name = ?1"));
  select->BindText(1, name);
  ASSAY_ASSIGN_OR_RETURN(const bool known, select->Step());
  if (!known) return loaded;
  loaded.id = select->Int(0);
  loaded.refs = {select->Int(1), select->Int(2), select->Int(3), select->Int(4)};
  loaded.stored.fence = select->Int(5);
  ASSAY_RETURN_IF_ERROR(ParseStored(select->Blob(6), &loaded.stored.evaluation));
  return loaded;
}

absl::Status SaveEvaluation(WriteContext& context, const LoadedEvaluation& loaded) {
  const v1::Evaluation& evaluation = loaded.stored.evaluation;
  const std::string proto = evaluation.SerializeAsString();
  const bool failed = evaluation.state() == v1::FAILED;
  ASSAY_ASSIGN_OR_RETURN(
      ScopedStatement update,
      context.db.Cached("UPDATE evaluations SET state = ?2, verdict = ?3, reason = ?4,"
                        " attempt_count = ?5, fence = ?6, revision = ?7, worker = ?8,"
                        " update_time = ?9, complete_time = ?10, problem_version = ?11,"
                        " proto = ?12 WHERE id = ?1"));
  update->BindInt(1, loaded.id);
  update->BindInt(2, evaluation.state());
  update->BindInt(3, evaluation.outcome().verdict());
  update->BindText(
      4, failed ? evaluation.infrastructure_error().reason() : evaluation.outcome().reason());
  update->BindInt(5, evaluation.attempt_count());
  update->BindInt(6, loaded.stored.fence);
  update->BindInt(7, evaluation.revision());
  update->BindTextOrNull(8, evaluation.worker());
  update->BindInt(9, ToUnixNanos(evaluation.update_time()));
  IsUnfinished(evaluation.state())
      ? update->BindNull(10)
      : update->BindInt(10, ToUnixNanos(evaluation.timeline().complete_time()));
  update->BindInt(11, loaded.refs.problem_version);
  update->BindBlob(12, proto);
  return update->Run();
}

SampleRow::SampleRow(OutcomeParts::Runner runner)
    : workload_index(runner.workload_index),
      runner_index(runner.runner_index),
      warm_ns(PackDoubles(runner.samples.warm_ns())),
      cold_ns(PackDoubles(runner.samples.cold_ns())) {
  runner.samples.clear_warm_ns();
  runner.samples.clear_cold_ns();
  runner.samples.SerializeToString(&rest);
}

absl::Status InsertLogs(WriteContext& context, int64_t evaluation_id, std::string_view build_log,
                        std::string_view output_log) {
  if (build_log.empty() && output_log.empty()) return absl::OkStatus();
  ASSAY_ASSIGN_OR_RETURN(ScopedStatement insert,
                         context.db.Cached("INSERT INTO logs (evaluation_id, build_log, output_log)"
                                           " VALUES (?1, ?2, ?3)"));
  insert->BindInt(1, evaluation_id);
  insert->BindText(2, build_log);
  insert->BindText(3, output_log);
  return insert->Run();
}

absl::Status InsertSamples(WriteContext& context, int64_t evaluation_id,
                           const std::vector<SampleRow>& rows) {
  for (const SampleRow& row : rows) {
    ASSAY_ASSIGN_OR_RETURN(
        ScopedStatement insert,
        context.db.Cached("INSERT INTO samples (evaluation_id, workload_index, runner_index,"
                          " warm_ns, cold_ns, rest) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"));
    insert->BindInt(1, evaluation_id);
    insert->BindInt(2, row.workload_index);
    insert->BindInt(3, row.runner_index);
    insert->BindBlob(4, row.warm_ns);
    insert->BindBlob(5, row.cold_ns);
    insert->BindBlob(6, row.rest);
    ASSAY_RETURN_IF_ERROR(insert->Run());
  }
  return absl::OkStatus();
}

std::unique_ptr<WriteOperation> NewRecordLease(LeaseGrant grant, StoreDone<v1::Evaluation> done) {
  return std::make_unique<RecordLease>(std::move(grant), std::move(done));
}
std::unique_ptr<WriteOperation> NewRecordCompletion(Completion completion,
                                                    StoreDone<CompletionRecord> done) {
  return std::make_unique<RecordCompletion>(std::move(completion), std::move(done));
}
std::unique_ptr<WriteOperation> NewRecordAttemptEnd(AttemptEnd end,
                                                    StoreDone<v1::Evaluation> done) {
  return std::make_unique<RecordAttemptEnd>(std::move(end), std::move(done));
}
std::unique_ptr<WriteOperation> NewRecordCancel(std::string evaluation, absl::Time time,
                                                StoreDone<v1::Evaluation> done) {
  return std::make_unique<RecordCancel>(std::move(evaluation), time, std::move(done));
}
}  // namespace assay
