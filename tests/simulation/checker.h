// What must hold at every moment, whatever the network, the disk and the processes do. The checker
// sees every write at the moment when it is applied, and every answer of the coordinator at the
// moment when it leaves; it keeps books of its own and trusts neither store nor queue.
#ifndef ASSAY_TESTS_SIMULATION_CHECKER_H_
#define ASSAY_TESTS_SIMULATION_CHECKER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "assay/v1/evaluation.pb.h"
#include "server/dispatch/dispatcher.h"
#include "store/store.h"

namespace assay::simulation {

class Checker {
 public:
  Checker(int attempts_max, std::function<absl::Duration()> now)
      : attempts_max_(attempts_max), now_(std::move(now)) {}

  const std::vector<std::string>& violations() const { return violations_; }
  void Fail(const std::string& what);

  // Every write and every lease told, for a verbose run.
  void SetTrace(std::function<void(const std::string&)> trace) { trace_ = std::move(trace); }

  // --- Writes, as applied.
  void OnCreated(const v1::Evaluation& evaluation);
  void OnLease(const LeaseGrant& grant, const absl::Status& result, v1::State before);
  void OnCompletion(const Completion& completion, const absl::Status& result,
                    bool already_recorded);
  // The second run that was stored with this completion.
  void OnConfirmation(const Completion& completion, const v1::Evaluation& confirmation);
  void OnAttemptEnd(const AttemptEnd& end, const absl::Status& result, v1::State before);
  void OnCancel(const std::string& evaluation, const absl::Status& result);
  // The writer was told that a write failed although it was applied.
  void OnLostAnswer(const std::string& evaluation) { books_[evaluation].doubtful = true; }

  // --- Answers of the coordinator, as they leave.
  void OnLeaseAnswered(const std::string& evaluation, int64_t fence, int attempt,
                       const std::string& worker, absl::Duration duration);
  void OnRenewed(const std::string& evaluation, int64_t fence, const std::string& worker,
                 absl::Duration duration);
  void OnCompleteAcknowledged(const std::string& evaluation, int64_t fence);
  // The worker said or will say that it gave the lease up.
  void OnGivenUp(const std::string& evaluation, int64_t fence);
  // `kept` by evaluation and fence; what the worker held beside them stands only a little longer.
  void OnRegistered(const std::string& worker, const std::map<std::string, int64_t>& kept,
                    absl::Duration lease_duration, absl::Duration orphan_grace);
  void OnObserved(const v1::Evaluation& evaluation);
  void OnCreateAcknowledged(const std::string& evaluation);

  // --- At the end.
  void CheckFinal(const std::string& evaluation, v1::State stored);
  const std::set<std::string>& acknowledged() const { return acknowledged_; }
  // Leases on second runs: by another worker than the first run's, and by the same.
  int elsewhere_count() const { return elsewhere_count_; }
  int same_worker_count() const { return same_worker_count_; }

 private:
  struct Books {
    int64_t fence = 0;  // of the last lease that was applied
    int ended = 0;      // counted ends
    int results = 0;
    int64_t result_fence = 0;
    v1::State final_state = v1::STATE_UNSPECIFIED;
    bool doubtful = false;
    std::map<int64_t, std::string> owners;  // by fence
    std::string first_worker;               // of a second run: who ran the first
    // The lease that a worker was told it has.
    int64_t told_fence = 0;
    std::string told_worker;
    int64_t given_up_fence = 0;  // by its worker's own word
    absl::Duration told_until = -absl::InfiniteDuration();
  };

  // Second runs are asked again.
  int AttemptsMax(const Books& books) const {
    return books.first_worker.empty() ? attempts_max_ : kSecondRunTries * attempts_max_;
  }
  void SetFinal(const std::string& evaluation, Books* books, v1::State state);
  void Tell(const std::string& evaluation, int64_t fence, const std::string& worker,
            absl::Duration duration);

  template <typename... Args>
  void Trace(const Args&... args) {
    if (trace_ != nullptr) trace_(absl::StrCat(args...));
  }

  std::function<void(const std::string&)> trace_;
  const int attempts_max_;
  const std::function<absl::Duration()> now_;
  std::map<std::string, Books> books_;
  std::set<std::string> acknowledged_;
  int elsewhere_count_ = 0;
  int same_worker_count_ = 0;
  std::vector<std::string> violations_;
};

}  // namespace assay::simulation

#endif  // ASSAY_TESTS_SIMULATION_CHECKER_H_
