// What the coordinator sees of the disk: a FakeStore whose writes are delivered by the simulation
// and shown to the checker. One for each start of the coordinator; the disk outlives them.
#ifndef ASSAY_TESTS_SIMULATION_CHECKED_STORE_H_
#define ASSAY_TESTS_SIMULATION_CHECKED_STORE_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "store/testing/fake_store.h"
#include "tests/simulation/checker.h"

namespace assay::simulation {

// Shared with the world that delivers the writes.
struct DiskControl {
  FakeStore disk{FakeStore::Mode::kManual};
  Checker* checker = nullptr;
  std::function<void()> on_write;     // something waits
  std::function<bool()> lose_answer;  // tell the writer that its applied write failed
  std::function<bool()> fail_read;
  bool muted = false;  // the process that asked is dead: apply, and tell nobody
};

class CheckedStore : public Store {
 public:
  explicit CheckedStore(DiskControl* control) : control_(control) {}

  void CreateProblem(v1::Problem problem, StoreDone<v1::Problem> done) override {
    control_->disk.CreateProblem(std::move(problem), std::move(done));
  }
  void RecordProblemAudit(v1::ProblemAudit audit, absl::Time time,
                          StoreDone<v1::Problem> done) override {
    control_->disk.RecordProblemAudit(std::move(audit), time, std::move(done));
  }
  void CreateCandidate(v1::Candidate candidate, std::string fingerprint,
                       StoreDone<v1::Candidate> done) override {
    control_->disk.CreateCandidate(std::move(candidate), std::move(fingerprint), std::move(done));
  }
  void CreateEvaluations(std::vector<NewEvaluation> evaluations,
                         StoreDone<std::vector<CreatedEvaluation>> done) override;
  void RecordLease(LeaseGrant grant, StoreDone<v1::Evaluation> done) override;
  void RecordCompletion(Completion completion, StoreDone<CompletionRecord> done) override;
  void RecordAttemptEnd(AttemptEnd end, StoreDone<v1::Evaluation> done) override;
  void RecordCancel(std::string evaluation, absl::Time time,
                    StoreDone<v1::Evaluation> done) override;
  void RecordWorker(v1::Worker worker, StoreDone<bool> done) override;
  void CreateToken(StoredToken token, NewAccessEvent event, StoreDone<v1::Token> done) override {
    control_->disk.CreateToken(std::move(token), std::move(event), std::move(done));
  }
  void RevokeToken(std::string name, absl::Time time, StoreDone<v1::Token> done) override {
    control_->disk.RevokeToken(std::move(name), time, std::move(done));
  }
  void RecordAccessEvent(NewAccessEvent event, StoreDone<v1::AccessEvent> done) override {
    control_->disk.RecordAccessEvent(std::move(event), std::move(done));
  }

  absl::StatusOr<v1::Problem> GetProblem(std::string_view name, int version) override {
    if (control_->fail_read()) return ReadFailure();
    return control_->disk.GetProblem(name, version);
  }
  absl::StatusOr<Listed<v1::Problem>> ListProblems(const Page& page) override {
    return control_->disk.ListProblems(page);
  }
  absl::StatusOr<v1::Candidate> GetCandidate(std::string_view name) override {
    if (control_->fail_read()) return ReadFailure();
    return control_->disk.GetCandidate(name);
  }
  absl::StatusOr<Listed<v1::Candidate>> ListCandidates(std::string_view problem,
                                                       const Page& page) override {
    return control_->disk.ListCandidates(problem, page);
  }
  absl::StatusOr<v1::Evaluation> GetEvaluation(std::string_view name,
                                               bool include_samples) override {
    if (control_->fail_read()) return ReadFailure();
    return control_->disk.GetEvaluation(name, include_samples);
  }
  absl::StatusOr<Listed<v1::Evaluation>> ListEvaluations(
      const std::vector<EvaluationCondition>& conditions, const Page& page) override {
    return control_->disk.ListEvaluations(conditions, page);
  }
  absl::StatusOr<v1::Evaluation> FindByIdentity(std::string_view identity) override {
    return control_->disk.FindByIdentity(identity);
  }
  absl::StatusOr<std::vector<UnfinishedEvaluation>> ListUnfinished() override {
    return control_->disk.ListUnfinished();
  }
  absl::StatusOr<RanOn> GetRanOn(std::string_view evaluation) override {
    return control_->disk.GetRanOn(evaluation);
  }
  absl::StatusOr<std::vector<v1::LeaderboardEntry>> Leaderboard(
      const LeaderboardQuery& query) override {
    return control_->disk.Leaderboard(query);
  }
  absl::StatusOr<std::vector<v1::Worker>> ListWorkers() override {
    return control_->disk.ListWorkers();
  }
  absl::StatusOr<std::vector<StoredToken>> ListTokens() override {
    return control_->disk.ListTokens();
  }
  absl::StatusOr<Listed<v1::AccessEvent>> ListAccessEvents(const Page& page) override {
    return control_->disk.ListAccessEvents(page);
  }
  absl::Status PublishCopy(const std::string& path) override {
    return control_->disk.PublishCopy(path);
  }
  void Shutdown() override {}

 private:
  static absl::Status ReadFailure() { return absl::UnavailableError("the disk is slow"); }
  v1::State StateOf(const std::string& evaluation) const;
  // Passes the result on, or a failure in its place, or nothing.
  template <typename T>
  void Answer(const std::string& evaluation, const StoreDone<T>& done, absl::StatusOr<T> result);

  DiskControl* const control_;
};

}  // namespace assay::simulation

#endif  // ASSAY_TESTS_SIMULATION_CHECKED_STORE_H_
