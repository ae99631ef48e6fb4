#include "store/transitions.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/strings.h"
#include "store/records.h"

namespace assay {
namespace {

absl::Status Fenced(const StoredEvaluation& stored, int64_t fence) {
  return ErrorWithReason(
      absl::StatusCode::kAborted, "LEASE_FENCED",
      absl::StrCat(stored.evaluation.name(), " is ", v1::State_Name(stored.evaluation.state()),
                   " under fence ", stored.fence, ", the call has fence ", fence,
                   "; the lease is gone, drop the attempt"));
}

bool HoldsLease(const StoredEvaluation& stored, int64_t fence) {
  return stored.evaluation.state() == v1::RUNNING && stored.fence == fence;
}

void Touch(absl::Time time, v1::Evaluation* evaluation) {
  *evaluation->mutable_update_time() = ToTimestamp(time);
  evaluation->set_revision(evaluation->revision() + 1);
}

}  // namespace

bool IsUnfinished(v1::State state) { return state == v1::QUEUED || state == v1::RUNNING; }

void InitializeEvaluation(v1::Evaluation* evaluation) {
  evaluation->set_revision(1);
  evaluation->clear_stage();
  evaluation->clear_waiting_reason();
  *evaluation->mutable_update_time() = evaluation->create_time();
  v1::Timeline* timeline = evaluation->mutable_timeline();
  *timeline->mutable_create_time() = evaluation->create_time();
  if (!IsUnfinished(evaluation->state()) && !timeline->has_complete_time()) {
    *timeline->mutable_complete_time() = evaluation->create_time();
  }
}

absl::Status ApplyLease(const LeaseGrant& grant, StoredEvaluation* stored) {
  v1::Evaluation& evaluation = stored->evaluation;
  if (evaluation.state() != v1::QUEUED || grant.fence <= stored->fence) {
    return ErrorWithReason(
        absl::StatusCode::kAborted, "NOT_QUEUED",
        absl::StrCat(evaluation.name(), " is ", v1::State_Name(evaluation.state()), " under fence ",
                     stored->fence, " and cannot be leased under fence ", grant.fence));
  }
  evaluation.set_state(v1::RUNNING);
  evaluation.set_worker(grant.worker);
  evaluation.set_attempt_count(grant.attempt);
  *evaluation.mutable_timeline()->mutable_lease_time() = ToTimestamp(grant.time);
  stored->fence = grant.fence;
  Touch(grant.time, &evaluation);
  return absl::OkStatus();
}

absl::StatusOr<bool> ApplyCompletion(const Completion& completion, const v1::Outcome& outcome,
                                     StoredEvaluation* stored) {
  v1::Evaluation& evaluation = stored->evaluation;
  // Fences of leases are positive; a stored answer has none, and cannot be completed.
  if (evaluation.state() == v1::SUCCEEDED && completion.fence > 0 &&
      stored->fence == completion.fence) {
    return false;
  }
  if (!HoldsLease(*stored, completion.fence)) return Fenced(*stored, completion.fence);
  evaluation.set_state(v1::SUCCEEDED);
  *evaluation.mutable_outcome() = outcome;
  evaluation.clear_infrastructure_error();
  v1::Timeline timeline = completion.timeline;
  *timeline.mutable_create_time() = evaluation.timeline().create_time();
  *timeline.mutable_lease_time() = evaluation.timeline().lease_time();
  *timeline.mutable_complete_time() = ToTimestamp(completion.time);
  *evaluation.mutable_timeline() = timeline;
  Touch(completion.time, &evaluation);
  return true;
}

absl::Status ApplyAttemptEnd(const AttemptEnd& end, StoredEvaluation* stored) {
  v1::Evaluation& evaluation = stored->evaluation;
  if (!HoldsLease(*stored, end.fence)) return Fenced(*stored, end.fence);
  if (end.error.code().empty()) {
    // Given back unused.
    evaluation.set_attempt_count(std::max(0, evaluation.attempt_count() - 1));
  } else {
    *evaluation.mutable_infrastructure_error() = end.error;
  }
  evaluation.set_state(end.final ? v1::FAILED : v1::QUEUED);
  if (end.final) {
    *evaluation.mutable_timeline()->mutable_complete_time() = ToTimestamp(end.time);
  }
  Touch(end.time, &evaluation);
  return absl::OkStatus();
}

void AddNote(std::string_view note, absl::Time time, v1::Evaluation* evaluation) {
  v1::Outcome* outcome = evaluation->mutable_outcome();
  outcome->set_message(
      absl::StrCat(outcome->message(), outcome->message().empty() ? "" : "\n", Av(note)));
  Touch(time, evaluation);
}

absl::Status ApplyCancel(absl::Time time, StoredEvaluation* stored) {
  v1::Evaluation& evaluation = stored->evaluation;
  if (!IsUnfinished(evaluation.state())) {
    return ErrorWithReason(
        absl::StatusCode::kFailedPrecondition, "EVALUATION_FINISHED",
        absl::StrCat(evaluation.name(), " is ", v1::State_Name(evaluation.state()),
                     " already and cannot be cancelled"));
  }
  evaluation.set_state(v1::CANCELLED);
  *evaluation.mutable_timeline()->mutable_complete_time() = ToTimestamp(time);
  ++stored->fence;
  Touch(time, &evaluation);
  return absl::OkStatus();
}

}  // namespace assay
