// The writes of the store as operations for the Writer. What can be computed without the database
// (splitting, serializing) is done when an operation is made, on the caller's thread.
#ifndef ASSAY_STORE_SQLITE_WRITES_H_
#define ASSAY_STORE_SQLITE_WRITES_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "store/records.h"
#include "store/sqlite/writer.h"
#include "store/store.h"
#include "store/transitions.h"

namespace assay {

std::unique_ptr<WriteOperation> NewCreateProblem(v1::Problem problem, StoreDone<v1::Problem> done);
std::unique_ptr<WriteOperation> NewRecordProblemAudit(v1::ProblemAudit audit, absl::Time time,
                                                      StoreDone<v1::Problem> done);
std::unique_ptr<WriteOperation> NewCreateCandidate(v1::Candidate candidate, std::string fingerprint,
                                                   StoreDone<v1::Candidate> done);
std::unique_ptr<WriteOperation> NewCreateEvaluations(
    std::vector<NewEvaluation> evaluations, StoreDone<std::vector<CreatedEvaluation>> done);
std::unique_ptr<WriteOperation> NewRecordLease(LeaseGrant grant, StoreDone<v1::Evaluation> done);
std::unique_ptr<WriteOperation> NewRecordCompletion(Completion completion,
                                                    StoreDone<CompletionRecord> done);
std::unique_ptr<WriteOperation> NewRecordAttemptEnd(AttemptEnd end, StoreDone<v1::Evaluation> done);
std::unique_ptr<WriteOperation> NewRecordCancel(std::string evaluation, absl::Time time,
                                                StoreDone<v1::Evaluation> done);
std::unique_ptr<WriteOperation> NewRecordWorker(v1::Worker worker, StoreDone<bool> done);
// Keeps the newest `kept_max` events of the event's kind.
std::unique_ptr<WriteOperation> NewCreateToken(StoredToken token, NewAccessEvent event,
                                               int64_t kept_max, StoreDone<v1::Token> done);
std::unique_ptr<WriteOperation> NewRevokeToken(std::string name, absl::Time time,
                                               StoreDone<v1::Token> done);
// Keeps the newest `kept_max` events of its kind.
std::unique_ptr<WriteOperation> NewRecordAccessEvent(NewAccessEvent event, int64_t kept_max,
                                                     StoreDone<v1::AccessEvent> done);

// --- Shared by the operations.

// An operation with one result. ApplyTo sets `result` to a value or to the status of a refusal.
template <typename T>
class ResultOperation : public WriteOperation {
 public:
  explicit ResultOperation(StoreDone<T> done) : done_(std::move(done)) {}
  absl::Status Apply(WriteContext& context) final {
    result_ = absl::InternalError("a write ended without a result");
    return ApplyTo(context, &result_);
  }
  void Finish(const absl::Status& status) final {
    status.ok() ? done_(std::move(result_)) : done_(status);
  }

 protected:
  virtual absl::Status ApplyTo(WriteContext& context, absl::StatusOr<T>* result) = 0;

 private:
  const StoreDone<T> done_;
  absl::StatusOr<T> result_ = absl::InternalError("a write was not applied");
};

// A candidate taken apart and serialized.
struct CandidateRow {
  CandidateRow(v1::Candidate candidate, std::string fingerprint);
  std::string name;
  std::string problem;
  std::string fingerprint;
  std::string label;
  std::string author;
  std::string model;
  int64_t create_time = 0;
  std::string proto;
  std::string files;
};
// Its id; inserts it unless the name is known.
absl::StatusOr<int64_t> InsertCandidate(WriteContext& context, const CandidateRow& row);
// 0: unknown.
absl::StatusOr<int64_t> FindCandidate(WriteContext& context, std::string_view name);

// Null: unknown. Valid until the next call.
absl::StatusOr<const WriteContext::KnownProblem*> FindProblem(WriteContext& context,
                                                              const std::string& name);

// Samples in the form in which they are stored.
struct SampleRow {
  explicit SampleRow(OutcomeParts::Runner runner);
  int workload_index;
  int runner_index;
  std::string warm_ns;
  std::string cold_ns;
  std::string rest;
};
// Of the rows that an evaluation refers to. 0: none.
struct EvaluationRefs {
  int64_t problem_id = 0;
  int64_t problem_version = 0;
  int64_t candidate_id = 0;
  int64_t baseline_id = 0;
};
// One row, `proto` being the evaluation as it is stored. An empty `request_id`: none. Its id.
absl::StatusOr<int64_t> InsertEvaluation(WriteContext& context, const v1::Evaluation& evaluation,
                                         std::string_view proto, const EvaluationRefs& refs,
                                         std::string_view request_id,
                                         std::string_view request_digest);

// What a transition needs to know of the stored row. id 0: unknown.
struct LoadedEvaluation {
  int64_t id = 0;
  EvaluationRefs refs;
  StoredEvaluation stored;
};
absl::StatusOr<LoadedEvaluation> LoadEvaluation(WriteContext& context, std::string_view name);
// Writes a changed evaluation back, with its outcome if there is one, without logs and samples.
absl::Status SaveEvaluation(WriteContext& context, const LoadedEvaluation& loaded);

// The second run of what has just completed with `results`, or nothing when it would not rank
// first anywhere.
absl::StatusOr<std::optional<v1::Evaluation>> ConfirmIfFirst(WriteContext& context,
                                                             const LoadedEvaluation& first,
                                                             const std::vector<ResultRow>& results,
                                                             const Completion& completion);
// `second` is final: if it is a second run, what it says of the first is written to the first.
absl::Status SettleFirstRun(WriteContext& context, const LoadedEvaluation& second, absl::Time time);

absl::Status InsertLogs(WriteContext& context, int64_t evaluation_id, std::string_view build_log,
                        std::string_view output_log);
absl::Status InsertSamples(WriteContext& context, int64_t evaluation_id,
                           const std::vector<SampleRow>& rows);

}  // namespace assay

#endif  // ASSAY_STORE_SQLITE_WRITES_H_
