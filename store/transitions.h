// The life of a stored evaluation as pure functions: what each write does to it, and when it is
// refused. Every implementation of Store applies these inside its transaction.
//
// On success the evaluation is changed and its revision is one higher; on an error it is untouched.
#ifndef ASSAY_STORE_TRANSITIONS_H_
#define ASSAY_STORE_TRANSITIONS_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "assay/v1/evaluation.pb.h"
#include "store/store.h"

namespace assay {

struct StoredEvaluation {
  v1::Evaluation evaluation;
  int64_t fence = 0;
};

// The form in which a new evaluation is stored: revision 1, nothing that is not durable.
void InitializeEvaluation(v1::Evaluation* evaluation);

absl::Status ApplyLease(const LeaseGrant& grant, StoredEvaluation* stored);

// True: changed. False: this very completion was recorded before. `outcome` is what to keep of
// completion.outcome.
absl::StatusOr<bool> ApplyCompletion(const Completion& completion, const v1::Outcome& outcome,
                                     StoredEvaluation* stored);

absl::Status ApplyAttemptEnd(const AttemptEnd& end, StoredEvaluation* stored);

absl::Status ApplyCancel(absl::Time time, StoredEvaluation* stored);

// Appends to the outcome's message.
void AddNote(std::string_view note, absl::Time time, v1::Evaluation* evaluation);

// QUEUED or RUNNING.
bool IsUnfinished(v1::State state);

}  // namespace assay

#endif  // ASSAY_STORE_TRANSITIONS_H_
