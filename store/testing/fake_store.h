// A Store in memory, for tests of what stands on a store. Held to the same conformance suite as the
// durable one.
//
// kThread: a writer thread applies writes, as in the real store. kManual: writes wait until
// RunOne or RunPending, which apply them and call `done` on the calling thread; for deterministic
// simulations. Thread-safe in both modes.
#ifndef ASSAY_STORE_TESTING_FAKE_STORE_H_
#define ASSAY_STORE_TESTING_FAKE_STORE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "store/records.h"
#include "store/store.h"
#include "store/transitions.h"

namespace assay {

class FakeStore : public Store {
 public:
  enum class Mode { kThread, kManual };
  explicit FakeStore(Mode mode = Mode::kThread);
  ~FakeStore() override;

  // --- Hooks.

  // Between the two, writes queue and nothing is applied, as if the disk were stuck. kThread.
  void BlockWrites();
  void ReleaseWrites();
  // The next write to be applied does nothing and gets this error, as if the disk had failed.
  // Several calls add up.
  void FailNextWrite(absl::Status error);
  // Writes that wait. With WaitForPending: blocks until that many do.
  size_t pending_count();
  void WaitForPending(size_t count);
  // Applies the oldest waiting write. False: there was none. kManual.
  bool RunOne();
  // Applies waiting writes until there are none, those made by callbacks included. kManual.
  void RunPending();
  // A crash between COMMIT and the answer: applies all waiting writes, and their `done` are never
  // called. kManual.
  void ApplyPendingWithoutAnswer();
  // A crash: forgets all waiting writes and their callbacks. What was applied stays. Returns how
  // many there were.
  size_t DropPending();
  // Paths given to PublishCopy.
  std::vector<std::string> published_paths();

  // --- Store.
  void CreateProblem(v1::Problem problem, StoreDone<v1::Problem> done) override;
  void RecordProblemAudit(v1::ProblemAudit audit, absl::Time time,
                          StoreDone<v1::Problem> done) override;
  void CreateCandidate(v1::Candidate candidate, std::string fingerprint,
                       StoreDone<v1::Candidate> done) override;
  void CreateEvaluations(std::vector<NewEvaluation> evaluations,
                         StoreDone<std::vector<CreatedEvaluation>> done) override;
  void RecordLease(LeaseGrant grant, StoreDone<v1::Evaluation> done) override;
  void RecordCompletion(Completion completion, StoreDone<CompletionRecord> done) override;
  void RecordAttemptEnd(AttemptEnd end, StoreDone<v1::Evaluation> done) override;
  void RecordCancel(std::string evaluation, absl::Time time,
                    StoreDone<v1::Evaluation> done) override;
  void RecordWorker(v1::Worker worker, StoreDone<bool> done) override;
  void CreateToken(StoredToken token, NewAccessEvent event, StoreDone<v1::Token> done) override;
  void RevokeToken(std::string name, absl::Time time, StoreDone<v1::Token> done) override;
  // Keeps all.
  void RecordAccessEvent(NewAccessEvent event, StoreDone<v1::AccessEvent> done) override;

  absl::StatusOr<v1::Problem> GetProblem(std::string_view name, int version) override;
  absl::StatusOr<Listed<v1::Problem>> ListProblems(const Page& page) override;
  absl::StatusOr<v1::Candidate> GetCandidate(std::string_view name) override;
  absl::StatusOr<Listed<v1::Candidate>> ListCandidates(std::string_view problem,
                                                       const Page& page) override;
  absl::StatusOr<v1::Evaluation> GetEvaluation(std::string_view name,
                                               bool include_samples) override;
  absl::StatusOr<Listed<v1::Evaluation>> ListEvaluations(
      const std::vector<EvaluationCondition>& conditions, const Page& page) override;
  absl::StatusOr<v1::Evaluation> FindByIdentity(std::string_view identity) override;
  absl::StatusOr<std::vector<UnfinishedEvaluation>> ListUnfinished() override;
  absl::StatusOr<RanOn> GetRanOn(std::string_view evaluation) override;
  absl::StatusOr<std::vector<v1::LeaderboardEntry>> Leaderboard(
      const LeaderboardQuery& query) override;
  absl::StatusOr<std::vector<v1::Worker>> ListWorkers() override;
  absl::StatusOr<std::vector<StoredToken>> ListTokens() override;
  absl::StatusOr<Listed<v1::AccessEvent>> ListAccessEvents(const Page& page) override;
  // Only remembers the path.
  absl::Status PublishCopy(const std::string& path) override;
  // Ends a BlockWrites.
  void Shutdown() override;

 private:
  struct Record {
    StoredEvaluation stored;  // with samples and logs
    std::string identity;
    std::string ran_device_class;
    int problem_version = 0;
    // By workload, as its second run found it.
    std::set<std::string> confirmed;
    std::set<std::string> contradicted;
  };
  // A result that may rank.
  struct Ranked {
    ResultRow row;
    size_t index = 0;  // of the record
    std::string code;  // the candidate that its clones are folded into
    bool settled = false;
  };
  using BoardKey = std::tuple<std::string, std::string, std::string, std::string>;
  struct Known {
    std::string digest;
    size_t index = 0;
  };
  // Applies a write, or not when the status is an error; returns the call of its `done`.
  using Write = std::function<std::function<void()>(const absl::Status&)>;

  template <typename T>
  void Enqueue(StoreDone<T> done, std::function<absl::StatusOr<T>()> apply);
  // Takes the oldest write and applies it. Null: none.
  std::function<void()> ApplyNext() ABSL_LOCKS_EXCLUDED(mutex_);
  void Run();

  absl::StatusOr<v1::Problem> DoCreateProblem(const v1::Problem& problem);
  absl::StatusOr<std::vector<CreatedEvaluation>> DoCreateEvaluations(
      const std::vector<NewEvaluation>& evaluations);
  absl::Status CheckNew(const NewEvaluation& input, const std::set<std::string>& brought) const;
  CreatedEvaluation Insert(const NewEvaluation& input);
  absl::StatusOr<CompletionRecord> DoRecordCompletion(const Completion& completion);
  std::optional<v1::Evaluation> ConfirmIfFirst(size_t index, const Completion& completion);
  void SettleFirstRun(const Record& second, absl::Time time);
  const v1::AccessEvent& AddAccessEvent(const NewAccessEvent& event);
  // By problem, workload, class and contract; fastest first. Those of problems that no audit
  // admitted are shown to nobody.
  std::map<BoardKey, std::vector<Ranked>> Boards();
  v1::LeaderboardEntry MakeEntry(const Ranked& ranked, int rank, bool pending);
  absl::StatusOr<v1::Evaluation> Change(const std::string& name,
                                        const std::function<absl::Status(Record*)>& change);
  // Null: unknown.
  Record* Find(std::string_view name);
  void AddCandidate(v1::Candidate candidate, const std::string& fingerprint);
  bool Matches(const Record& record, const EvaluationCondition& condition) const;

  const Mode mode_;

  absl::Mutex mutex_;  // the queue
  absl::CondVar changed_;
  std::deque<Write> queue_ ABSL_GUARDED_BY(mutex_);
  std::deque<absl::Status> failures_ ABSL_GUARDED_BY(mutex_);
  bool blocked_ ABSL_GUARDED_BY(mutex_) = false;
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  bool shut_down_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;

  absl::Mutex data_mutex_;  // everything below; never held while `done` runs
  std::map<std::string, std::map<int, v1::Problem>> problems_;
  std::vector<v1::Candidate> candidates_;
  std::map<std::string, size_t, std::less<>> candidate_index_;
  // The first candidate of a problem with a fingerprint.
  std::map<std::pair<std::string, std::string>, std::string> fingerprints_;
  std::vector<Record> records_;  // in order of creation
  std::map<std::string, size_t, std::less<>> record_index_;
  std::map<std::string, Known> requests_;
  std::set<size_t> unfinished_;
  std::map<std::string, v1::Worker> workers_;
  std::map<std::string, StoredToken> tokens_;
  std::vector<v1::AccessEvent> access_events_;
  std::vector<std::string> published_paths_;

  std::thread thread_;
};

}  // namespace assay

#endif  // ASSAY_STORE_TESTING_FAKE_STORE_H_
