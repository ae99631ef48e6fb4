#include "tests/simulation/checked_store.h"

namespace assay::simulation {

v1::State CheckedStore::StateOf(const std::string& evaluation) const {
  const absl::StatusOr<v1::Evaluation> stored = control_->disk.GetEvaluation(evaluation, false);
  return stored.ok() ? stored->state() : v1::STATE_UNSPECIFIED;
}

template <typename T>
void CheckedStore::Answer(const std::string& evaluation, const StoreDone<T>& done,
                          absl::StatusOr<T> result) {
  if (control_->muted) return;
  if (result.ok() && control_->lose_answer()) {
    control_->checker->OnLostAnswer(evaluation);
    done(absl::UnavailableError("the disk did not say whether it wrote"));
    return;
  }
  done(std::move(result));
}

void CheckedStore::CreateEvaluations(std::vector<NewEvaluation> evaluations,
                                     StoreDone<std::vector<CreatedEvaluation>> done) {
  control_->disk.CreateEvaluations(std::move(evaluations),
                                   [this, control = control_, done = std::move(done)](
                                       absl::StatusOr<std::vector<CreatedEvaluation>> result) {
                                     if (result.ok()) {
                                       for (const CreatedEvaluation& created : *result) {
                                         if (!created.existed)
                                           control->checker->OnCreated(created.evaluation);
                                       }
                                     }
                                     if (!control->muted) done(std::move(result));
                                   });
  control_->on_write();
}

void CheckedStore::RecordLease(LeaseGrant grant, StoreDone<v1::Evaluation> done) {
  control_->disk.RecordLease(
      grant, [this, grant, done = std::move(done)](absl::StatusOr<v1::Evaluation> result) {
        control_->checker->OnLease(grant, result.status(), StateOf(grant.evaluation));
        Answer(grant.evaluation, done, std::move(result));
      });
  control_->on_write();
}

void CheckedStore::RecordCompletion(Completion completion, StoreDone<CompletionRecord> done) {
  Completion key;
  key.evaluation = completion.evaluation;
  key.fence = completion.fence;
  control_->disk.RecordCompletion(
      std::move(completion),
      [this, key, done = std::move(done)](absl::StatusOr<CompletionRecord> result) {
        control_->checker->OnCompletion(key, result.status(),
                                        result.ok() && result->already_recorded);
        if (result.ok() && !result->already_recorded && result->confirmation.has_value()) {
          control_->checker->OnConfirmation(key, *result->confirmation);
        }
        Answer(key.evaluation, done, std::move(result));
      });
  control_->on_write();
}

void CheckedStore::RecordAttemptEnd(AttemptEnd end, StoreDone<v1::Evaluation> done) {
  control_->disk.RecordAttemptEnd(
      end, [this, end, done = std::move(done)](absl::StatusOr<v1::Evaluation> result) {
        control_->checker->OnAttemptEnd(end, result.status(), StateOf(end.evaluation));
        Answer(end.evaluation, done, std::move(result));
      });
  control_->on_write();
}

void CheckedStore::RecordCancel(std::string evaluation, absl::Time time,
                                StoreDone<v1::Evaluation> done) {
  control_->disk.RecordCancel(
      evaluation, time,
      [this, evaluation, done = std::move(done)](absl::StatusOr<v1::Evaluation> result) {
        control_->checker->OnCancel(evaluation, result.status());
        Answer(evaluation, done, std::move(result));
      });
  control_->on_write();
}

void CheckedStore::RecordWorker(v1::Worker worker, StoreDone<bool> done) {
  control_->disk.RecordWorker(
      std::move(worker), [control = control_, done = std::move(done)](absl::StatusOr<bool> result) {
        if (!control->muted) done(std::move(result));
      });
  control_->on_write();
}

}  // namespace assay::simulation
