// Short ways to make records and to wait for writes, for tests of stores and of what stands on
// them.
#ifndef ASSAY_STORE_TESTING_BUILDERS_H_
#define ASSAY_STORE_TESTING_BUILDERS_H_

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "store/store.h"

namespace assay::testing {

// Calls `start` with a callback and blocks until it was called:
//   Await<v1::Evaluation>([&](auto done) { store.RecordLease(grant, std::move(done)); })
template <typename T, typename Start>
absl::StatusOr<T> Await(Start&& start) {
  struct Shared {
    absl::Notification notification;
    absl::StatusOr<T> result;
  };
  auto shared = std::make_shared<Shared>();
  start(StoreDone<T>([shared](absl::StatusOr<T> result) {
    shared->result = std::move(result);
    shared->notification.Notify();
  }));
  shared->notification.WaitForNotification();
  return std::move(shared->result);
}

// 2023-11-14 and `seconds`.
absl::Time TestTime(double seconds);

// "problems/{name}" with a file and a digest made of name, version and `content`.
v1::Problem MakeProblem(std::string_view name, int version = 1, std::string_view content = "a");
// "candidates/{id padded to 32}" of problem `problem`, labelled `id`.
v1::Candidate MakeCandidate(std::string_view id, std::string_view problem = "gelu");
// "evaluations/{id}" of `problem`, QUEUED, that brings MakeCandidate(candidate).
NewEvaluation MakeEvaluation(std::string_view id, std::string_view candidate = "c1",
                             std::string_view problem = "gelu", double seconds = 0);
// PASSED on `workload` with this median, with samples of two runners and logs.
v1::Outcome MakeOutcome(std::string_view workload, double median_ns);

LeaseGrant MakeGrant(std::string_view id, int64_t fence, int attempt = 1, double seconds = 10);
Completion MakeCompletion(std::string_view id, int64_t fence, v1::Outcome outcome,
                          double seconds = 20);

// Of `problem` as it is stored. Results rank only where one passed.
v1::ProblemAudit MakeAudit(const v1::Problem& problem, bool passed);

// The same, blocking.
absl::StatusOr<v1::Problem> CreateProblem(Store& store, v1::Problem problem);
absl::StatusOr<v1::Problem> RecordAudit(Store& store, const v1::Problem& problem, bool passed);
absl::StatusOr<v1::Problem> CreateAdmittedProblem(Store& store, const v1::Problem& problem);
absl::StatusOr<v1::Candidate> CreateCandidate(Store& store, v1::Candidate candidate,
                                              std::string fingerprint = "");
absl::StatusOr<std::vector<CreatedEvaluation>> CreateEvaluations(
    Store& store, std::vector<NewEvaluation> evaluations);
absl::StatusOr<CreatedEvaluation> CreateOne(Store& store, NewEvaluation evaluation);
absl::StatusOr<v1::Evaluation> Lease(Store& store, LeaseGrant grant);
absl::StatusOr<CompletionRecord> Complete(Store& store, Completion completion);
absl::StatusOr<v1::Evaluation> EndAttempt(Store& store, AttemptEnd end);
absl::StatusOr<v1::Evaluation> Cancel(Store& store, std::string_view id, double seconds = 30);

// Creates, leases and completes "evaluations/{id}"; the fence is 1.
absl::StatusOr<CompletionRecord> RunEvaluation(Store& store, NewEvaluation evaluation,
                                               Completion completion);

// The same, and the second run that it calls for, with `second` as its outcome.
absl::StatusOr<CompletionRecord> RunConfirmed(Store& store, NewEvaluation evaluation,
                                              Completion completion, v1::Outcome second);
absl::StatusOr<CompletionRecord> RunConfirmed(Store& store, NewEvaluation evaluation,
                                              Completion completion);

}  // namespace assay::testing

#endif  // ASSAY_STORE_TESTING_BUILDERS_H_
