#include "store/testing/fake_store.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/strings.h"
#include "store/confirmation.h"
#include "store/records.h"

namespace assay {
namespace {

absl::Status ShutDown() {
  return ErrorWithReason(absl::StatusCode::kUnavailable, "STORE_SHUT_DOWN",
                         "the store is shut down");
}

}  // namespace

FakeStore::FakeStore(Mode mode) : mode_(mode) {
  if (mode_ == Mode::kThread) thread_ = std::thread([this] { Run(); });
}

FakeStore::~FakeStore() {
  Shutdown();
  if (!thread_.joinable()) return;
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
    changed_.SignalAll();
  }
  thread_.join();
}

// --- The queue.

template <typename T>
void FakeStore::Enqueue(StoreDone<T> done, std::function<absl::StatusOr<T>()> apply) {
  absl::MutexLock lock(&mutex_);
  const bool refused = shut_down_;
  queue_.push_back([this, refused, done = std::move(done),
                    apply = std::move(apply)](const absl::Status& failure) {
    absl::StatusOr<T> result = ShutDown();
    if (!refused && !failure.ok()) {
      result = failure;
    } else if (!refused) {
      absl::MutexLock data_lock(&data_mutex_);
      result = apply();
    }
    return [done, result = std::move(result)] { done(result); };
  });
  changed_.SignalAll();
}

std::function<void()> FakeStore::ApplyNext() {
  Write write;
  absl::Status failure;
  {
    absl::MutexLock lock(&mutex_);
    if (queue_.empty()) return nullptr;
    write = std::move(queue_.front());
    queue_.pop_front();
    if (!failures_.empty()) {
      failure = std::move(failures_.front());
      failures_.pop_front();
    }
    busy_ = true;
  }
  return write(failure);
}

void FakeStore::Run() {
  for (;;) {
    {
      absl::MutexLock lock(&mutex_);
      busy_ = false;
      changed_.SignalAll();
      while (!stop_ && (queue_.empty() || blocked_)) changed_.Wait(&mutex_);
      if (queue_.empty()) return;
    }
    if (std::function<void()> answer = ApplyNext()) answer();
  }
}

void FakeStore::BlockWrites() {
  absl::MutexLock lock(&mutex_);
  blocked_ = true;
  while (busy_) changed_.Wait(&mutex_);
}

void FakeStore::ReleaseWrites() {
  absl::MutexLock lock(&mutex_);
  blocked_ = false;
  changed_.SignalAll();
}

void FakeStore::FailNextWrite(absl::Status error) {
  absl::MutexLock lock(&mutex_);
  failures_.push_back(std::move(error));
}

size_t FakeStore::pending_count() {
  absl::MutexLock lock(&mutex_);
  return queue_.size();
}

void FakeStore::WaitForPending(size_t count) {
  absl::MutexLock lock(&mutex_);
  while (queue_.size() < count) changed_.Wait(&mutex_);
}

bool FakeStore::RunOne() {
  std::function<void()> answer = ApplyNext();
  if (!answer) return false;
  answer();
  absl::MutexLock lock(&mutex_);
  busy_ = false;
  return true;
}

void FakeStore::RunPending() {
  while (RunOne()) {
  }
}

void FakeStore::ApplyPendingWithoutAnswer() {
  while (ApplyNext()) {
  }
  absl::MutexLock lock(&mutex_);
  busy_ = false;
}

size_t FakeStore::DropPending() {
  std::deque<Write> dropped;
  absl::MutexLock lock(&mutex_);
  dropped.swap(queue_);
  return dropped.size();
}

void FakeStore::Shutdown() {
  {
    absl::MutexLock lock(&mutex_);
    shut_down_ = true;
    blocked_ = false;
    changed_.SignalAll();
  }
  if (mode_ == Mode::kManual) return RunPending();
  absl::MutexLock lock(&mutex_);
  while (busy_ || !queue_.empty()) changed_.Wait(&mutex_);
}

std::vector<std::string> FakeStore::published_paths() {
  absl::MutexLock lock(&data_mutex_);
  return published_paths_;
}

// --- Writes.

void FakeStore::CreateProblem(v1::Problem problem, StoreDone<v1::Problem> done) {
  Enqueue<v1::Problem>(std::move(done),
                       [this, problem = std::move(problem)] { return DoCreateProblem(problem); });
}

absl::StatusOr<v1::Problem> FakeStore::DoCreateProblem(const v1::Problem& problem) {
  std::map<int, v1::Problem>& versions = problems_[problem.name()];
  for (const auto& [version, stored] : versions) {
    if (stored.digest() == problem.digest()) return stored;
  }
  if (!versions.empty() && problem.version() <= versions.rbegin()->first) {
    return ErrorWithReason(
        absl::StatusCode::kAlreadyExists, "PROBLEM_VERSION_EXISTS",
        absl::StrCat(problem.name(), " has version ", problem.version(), " with other content"));
  }
  versions[problem.version()] = problem;
  return problem;
}

void FakeStore::RecordProblemAudit(v1::ProblemAudit audit, absl::Time time,
                                   StoreDone<v1::Problem> done) {
  *audit.mutable_time() = ToTimestamp(time);
  Enqueue<v1::Problem>(
      std::move(done), [this, audit = std::move(audit)]() -> absl::StatusOr<v1::Problem> {
        const auto problem = problems_.find(audit.problem());
        std::map<int, v1::Problem> none;
        std::map<int, v1::Problem>& versions = problem == problems_.end() ? none : problem->second;
        const auto found = versions.find(std::max(audit.problem_version(), 1));
        if (found == versions.end()) {
          return NotFound("PROBLEM_NOT_FOUND",
                          absl::StrCat(audit.problem(), " version ", audit.problem_version()));
        }
        ASSAY_RETURN_IF_ERROR(CheckAuditDigest(audit, found->second.digest()));
        *found->second.mutable_audit() = SummarizeAudit(audit);
        return found->second;
      });
}

void FakeStore::CreateCandidate(v1::Candidate candidate, std::string fingerprint,
                                StoreDone<v1::Candidate> done) {
  Enqueue<v1::Candidate>(std::move(done),
                         [this, candidate = std::move(candidate),
                          fingerprint = std::move(fingerprint)]() -> absl::StatusOr<v1::Candidate> {
                           AddCandidate(candidate, fingerprint);
                           return candidates_[candidate_index_[candidate.name()]];
                         });
}

void FakeStore::AddCandidate(v1::Candidate candidate, const std::string& fingerprint) {
  if (!candidate_index_.try_emplace(candidate.name(), candidates_.size()).second) return;
  candidate.clear_clone_of();
  if (!fingerprint.empty()) {
    const auto [first, fresh] = fingerprints_.try_emplace(
        {ProblemName(candidate.spec().problem()), fingerprint}, candidate.name());
    if (!fresh) candidate.set_clone_of(first->second);
  }
  candidates_.push_back(std::move(candidate));
}

void FakeStore::CreateEvaluations(std::vector<NewEvaluation> evaluations,
                                  StoreDone<std::vector<CreatedEvaluation>> done) {
  Enqueue<std::vector<CreatedEvaluation>>(
      std::move(done),
      [this, evaluations = std::move(evaluations)] { return DoCreateEvaluations(evaluations); });
}

absl::Status FakeStore::CheckNew(const NewEvaluation& input,
                                 const std::set<std::string>& brought) const {
  const v1::Evaluation& evaluation = input.evaluation;
  const auto problem = problems_.find(evaluation.problem());
  if (problem == problems_.end() || problem->second.empty()) {
    return NotFound("PROBLEM_NOT_FOUND", evaluation.problem());
  }
  for (const std::string* name : {&evaluation.candidate(), &evaluation.baseline_candidate()}) {
    if (name == &evaluation.baseline_candidate() && name->empty()) continue;
    if (candidate_index_.count(*name) == 0 && brought.count(*name) == 0) {
      return NotFound("CANDIDATE_NOT_FOUND", *name);
    }
  }
  if (record_index_.count(evaluation.name()) != 0) {
    return ErrorWithReason(absl::StatusCode::kAlreadyExists, "EVALUATION_EXISTS",
                           absl::StrCat(evaluation.name(), " exists"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<CreatedEvaluation>> FakeStore::DoCreateEvaluations(
    const std::vector<NewEvaluation>& evaluations) {
  std::set<std::string> brought;
  for (const NewEvaluation& input : evaluations) {
    if (input.candidate.has_value()) brought.insert(input.candidate->name());
    if (input.baseline_candidate.has_value()) brought.insert(input.baseline_candidate->name());
  }
  // All or nothing: everything is checked before anything is stored.
  std::map<std::string, std::string> digests;  // request_id to digest, of this call
  std::set<std::string> names;
  for (const NewEvaluation& input : evaluations) {
    if (!input.request_id.empty()) {
      const auto known = requests_.find(input.request_id);
      const auto [own, fresh] = digests.try_emplace(input.request_id, input.request_digest);
      if (own->second != input.request_digest ||
          (known != requests_.end() && known->second.digest != input.request_digest)) {
        return ErrorWithReason(
            absl::StatusCode::kAlreadyExists, "REQUEST_ID_REUSED",
            absl::StrCat("request_id '", input.request_id, "' was used before with other content"));
      }
      if (known != requests_.end() || !fresh) continue;
    }
    ASSAY_RETURN_IF_ERROR(CheckNew(input, brought));
    if (!names.insert(input.evaluation.name()).second) {
      return ErrorWithReason(absl::StatusCode::kAlreadyExists, "EVALUATION_EXISTS",
                             absl::StrCat(input.evaluation.name(), " stands twice in one call"));
    }
  }
  std::vector<CreatedEvaluation> created;
  for (const NewEvaluation& input : evaluations) {
    const auto known = requests_.find(input.request_id);
    if (!input.request_id.empty() && known != requests_.end()) {
      created.push_back({WithoutSamples(records_[known->second.index].stored.evaluation), true});
    } else {
      created.push_back(Insert(input));
    }
  }
  return created;
}

CreatedEvaluation FakeStore::Insert(const NewEvaluation& input) {
  if (input.candidate.has_value()) AddCandidate(*input.candidate, input.candidate_fingerprint);
  if (input.baseline_candidate.has_value()) {
    AddCandidate(*input.baseline_candidate, input.baseline_fingerprint);
  }
  const size_t index = records_.size();
  Record& record = records_.emplace_back();
  record.stored.evaluation = input.evaluation;
  InitializeEvaluation(&record.stored.evaluation);
  record.problem_version = problems_[input.evaluation.problem()].rbegin()->first;
  if (IsUnfinished(input.evaluation.state())) unfinished_.insert(index);
  record_index_[input.evaluation.name()] = index;
  if (!input.request_id.empty()) requests_[input.request_id] = {input.request_digest, index};
  return {WithoutSamples(record.stored.evaluation), false};
}

FakeStore::Record* FakeStore::Find(std::string_view name) {
  const auto found = record_index_.find(name);
  return found == record_index_.end() ? nullptr : &records_[found->second];
}

absl::StatusOr<v1::Evaluation> FakeStore::Change(
    const std::string& name, const std::function<absl::Status(Record*)>& change) {
  Record* record = Find(name);
  if (record == nullptr) return NotFound("EVALUATION_NOT_FOUND", name);
  ASSAY_RETURN_IF_ERROR(change(record));
  if (!IsUnfinished(record->stored.evaluation.state())) {
    unfinished_.erase(static_cast<size_t>(record - records_.data()));
  }
  return WithoutSamples(record->stored.evaluation);
}

void FakeStore::RecordLease(LeaseGrant grant, StoreDone<v1::Evaluation> done) {
  Enqueue<v1::Evaluation>(std::move(done), [this, grant = std::move(grant)] {
    return Change(grant.evaluation, [&](Record* record) -> absl::Status {
      StoredEvaluation changed = record->stored;
      ASSAY_RETURN_IF_ERROR(ApplyLease(grant, &changed));
      const std::map<int, v1::Problem>& versions = problems_[changed.evaluation.problem()];
      if (grant.problem_version != 0 && versions.count(grant.problem_version) == 0) {
        return NotFound("PROBLEM_NOT_FOUND", absl::StrCat(changed.evaluation.problem(), " version ",
                                                          grant.problem_version));
      }
      record->stored = std::move(changed);
      record->problem_version =
          grant.problem_version != 0 ? grant.problem_version : versions.rbegin()->first;
      return absl::OkStatus();
    });
  });
}

void FakeStore::RecordCompletion(Completion completion, StoreDone<CompletionRecord> done) {
  Enqueue<CompletionRecord>(std::move(done), [this, completion = std::move(completion)] {
    return DoRecordCompletion(completion);
  });
}

absl::StatusOr<CompletionRecord> FakeStore::DoRecordCompletion(const Completion& completion) {
  bool changed = false;
  ASSAY_ASSIGN_OR_RETURN(
      v1::Evaluation evaluation, Change(completion.evaluation, [&](Record* record) -> absl::Status {
        ASSAY_ASSIGN_OR_RETURN(changed,
                               ApplyCompletion(completion, completion.outcome, &record->stored));
        if (!changed) return absl::OkStatus();
        record->identity = completion.identity;
        record->ran_device_class = completion.device_class;
        return absl::OkStatus();
      }));
  CompletionRecord record{!changed, std::move(evaluation), std::nullopt};
  const size_t index = record_index_[completion.evaluation];
  if (!changed) {
    const Record* second = Find(ConfirmationName(completion.evaluation));
    if (second != nullptr) record.confirmation = WithoutSamples(second->stored.evaluation);
  } else if (!record.evaluation.confirms().empty()) {
    SettleFirstRun(records_[index], completion.time);
  } else if (completion.may_confirm) {
    record.confirmation = ConfirmIfFirst(index, completion);
  }
  return record;
}

std::optional<v1::Evaluation> FakeStore::ConfirmIfFirst(size_t index,
                                                        const Completion& completion) {
  bool is_first = false;
  for (const auto& [key, board] : Boards()) {
    double first_ns = std::numeric_limits<double>::infinity();
    for (const Ranked& ranked : board) {
      if (ranked.settled) first_ns = std::min(first_ns, ranked.row.median_ns);
    }
    for (const Ranked& ranked : board) {
      is_first |= ranked.index == index && ranked.row.median_ns <= first_ns;
    }
  }
  if (!is_first || completion.device_class.empty()) return std::nullopt;
  NewEvaluation second;
  second.evaluation =
      MakeConfirmation(records_[index].stored.evaluation, completion.device_class, completion.time);
  return Insert(second).evaluation;
}

void FakeStore::SettleFirstRun(const Record& second, absl::Time time) {
  Record* first = Find(second.stored.evaluation.confirms());
  if (first == nullptr || first->problem_version != second.problem_version) return;
  v1::Evaluation& evaluation = first->stored.evaluation;
  const std::vector<WorkloadAgreement> agreements =
      CompareRuns(evaluation.outcome(), second.stored.evaluation.outcome());
  for (const WorkloadAgreement& one : agreements) {
    if (one.agreement == Agreement::kAgrees) first->confirmed.insert(one.workload);
    if (one.agreement == Agreement::kContradicts) first->contradicted.insert(one.workload);
  }
  std::string note =
      DisputeNote(second.stored.evaluation.name(), second.stored.evaluation.outcome(), agreements);
  if (note.empty()) note = OpenNote(second.stored.evaluation, agreements);
  if (!note.empty()) AddNote(note, time, &evaluation);
}

void FakeStore::RecordAttemptEnd(AttemptEnd end, StoreDone<v1::Evaluation> done) {
  Enqueue<v1::Evaluation>(std::move(done), [this, end = std::move(end)] {
    return Change(end.evaluation, [&](Record* record) -> absl::Status {
      ASSAY_RETURN_IF_ERROR(ApplyAttemptEnd(end, &record->stored));
      if (end.final) SettleFirstRun(*record, end.time);
      return absl::OkStatus();
    });
  });
}

void FakeStore::RecordCancel(std::string evaluation, absl::Time time,
                             StoreDone<v1::Evaluation> done) {
  Enqueue<v1::Evaluation>(std::move(done), [this, evaluation = std::move(evaluation), time] {
    return Change(evaluation, [&](Record* record) -> absl::Status {
      ASSAY_RETURN_IF_ERROR(ApplyCancel(time, &record->stored));
      SettleFirstRun(*record, time);
      return absl::OkStatus();
    });
  });
}

void FakeStore::RecordWorker(v1::Worker worker, StoreDone<bool> done) {
  Enqueue<bool>(std::move(done), [this, worker = std::move(worker)]() -> absl::StatusOr<bool> {
    workers_[worker.name()] = worker;
    return true;
  });
}

void FakeStore::CreateToken(StoredToken token, NewAccessEvent event, StoreDone<v1::Token> done) {
  Enqueue<v1::Token>(
      std::move(done),
      [this, token = std::move(token), event = std::move(event)]() -> absl::StatusOr<v1::Token> {
        if (!tokens_.try_emplace(token.token.name(), token).second) {
          return TokenExists(token.token.name());
        }
        AddAccessEvent(event);
        return token.token;
      });
}

void FakeStore::RevokeToken(std::string name, absl::Time time, StoreDone<v1::Token> done) {
  Enqueue<v1::Token>(std::move(done),
                     [this, name = std::move(name), time]() -> absl::StatusOr<v1::Token> {
                       const auto found = tokens_.find(name);
                       if (found == tokens_.end()) return NotFound("TOKEN_NOT_FOUND", name);
                       v1::Token& token = found->second.token;
                       if (!token.has_revoke_time())
                         *token.mutable_revoke_time() = ToTimestamp(time);
                       return token;
                     });
}

void FakeStore::RecordAccessEvent(NewAccessEvent event, StoreDone<v1::AccessEvent> done) {
  Enqueue<v1::AccessEvent>(std::move(done),
                           [this, event = std::move(event)]() -> absl::StatusOr<v1::AccessEvent> {
                             return AddAccessEvent(event);
                           });
}

const v1::AccessEvent& FakeStore::AddAccessEvent(const NewAccessEvent& event) {
  access_events_.push_back(event.event);
  access_events_.back().set_number(static_cast<int64_t>(access_events_.size()));
  return access_events_.back();
}

}  // namespace assay
