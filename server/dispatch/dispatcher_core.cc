// The calls of the dispatcher. What follows from them is in dispatcher_effects.cc.
#include "server/dispatch/dispatcher_core.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/status.h"
#include "base/strings.h"
#include "server/dispatch/times.h"

namespace assay {
namespace {

constexpr size_t kStageBytesMax = 32;
// Callers that wait for one and the same poll, completion or abandon.
constexpr size_t kSharersMax = 16;

absl::Status Stopping() {
  return ErrorWithReason(absl::StatusCode::kUnavailable, "SHUTTING_DOWN",
                         "the coordinator is shutting down; try again");
}

absl::Status TooManySharers(std::string_view what) {
  return ErrorWithReason(absl::StatusCode::kUnavailable, "OVERLOADED",
                         absl::StrCat("too many calls wait for the same ", Av(what)));
}

absl::Status InvalidRegistration(const std::string& message) {
  return ErrorWithReason(absl::StatusCode::kInvalidArgument, "INVALID_REGISTRATION", message);
}

bool IsWorkerName(const std::string& name) {
  if (name.empty() || name.size() > limits::kNameBytesMax) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

// The description under the names that the coordinator gives.
absl::StatusOr<v1::Worker> CheckRegistration(const internal::v1::RegisterWorkerRequest& request) {
  if (!IsWorkerName(request.worker())) {
    return InvalidRegistration(absl::StrCat("worker name '", request.worker(),
                                            "' is not of [a-z0-9-] with 1 to ",
                                            limits::kNameBytesMax, " characters"));
  }
  v1::Worker worker = request.description();
  worker.set_name(absl::StrCat("workers/", request.worker()));
  const auto device_count = static_cast<size_t>(worker.devices_size());
  if (device_count == 0 || device_count > limits::kDevicesPerWorkerMax) {
    return InvalidRegistration(absl::StrCat(worker.name(), " offers ", device_count,
                                            " devices; 1 to ", limits::kDevicesPerWorkerMax,
                                            " are allowed"));
  }
  const auto held_count = static_cast<size_t>(request.held_leases_size());
  if (held_count > static_cast<size_t>(limits::kLeasesPerWorkerMax)) {
    return InvalidRegistration(absl::StrCat(worker.name(), " announces ", held_count,
                                            " leases; at most ", limits::kLeasesPerWorkerMax,
                                            " are allowed"));
  }
  int index = 0;
  for (v1::Device& device : *worker.mutable_devices()) {
    const std::string prefix = absl::StrCat(worker.name(), "/devices/");
    if (device.name().empty()) device.set_name(absl::StrCat(prefix, index));
    ++index;
    if (device.name().rfind(prefix, 0) != 0) {
      return InvalidRegistration(
          absl::StrCat("device '", device.name(), "' is not named '", prefix, "...'"));
    }
    if (device.kind().empty() || device.device_class().empty()) {
      return InvalidRegistration(
          absl::StrCat("device '", device.name(), "' has no kind or no device class"));
    }
  }
  return worker;
}

bool IsStage(const std::string& stage) {
  return stage.size() <= kStageBytesMax && std::all_of(stage.begin(), stage.end(), [](char c) {
           return (c >= 'A' && c <= 'Z') || c == '_';
         });
}

QueueLease ToLease(const internal::v1::LeaseRef& ref) { return {ref.evaluation(), ref.fence()}; }

QueueItem ToItem(const v1::Evaluation& evaluation, int64_t fence, int attempts_max,
                 absl::Time now) {
  QueueItem item;
  item.evaluation = evaluation.name();
  item.device_class = evaluation.device_class();
  item.priority = evaluation.priority();
  item.fence = fence;
  item.attempts = evaluation.attempt_count();
  item.attempts_max = evaluation.confirms().empty() ? attempts_max : kSecondRunTries * attempts_max;
  item.age = std::max(now - FromProto(evaluation.create_time()), absl::ZeroDuration());
  item.worker = evaluation.worker();
  return item;
}

QueueOptions Merge(const DispatcherOptions& options, QueueOptions queue_options) {
  queue_options.lease_duration = options.lease_duration;
  queue_options.restart_grace = options.restart_grace;
  queue_options.attempts_max = options.attempts_max;
  queue_options.quarantine_after = options.quarantine_after;
  return queue_options;
}

}  // namespace

// --- Start and stop.

DispatcherCore::DispatcherCore(const DispatcherOptions& options, const QueueOptions& queue_options,
                               std::shared_ptr<TaskRunner> runner)
    : options_(options),
      queue_options_(Merge(options, queue_options)),
      runner_(std::move(runner)),
      queue_(queue_options_) {}

absl::StatusOr<std::shared_ptr<DispatcherCore>> DispatcherCore::Create(
    const DispatcherOptions& options, QueueOptions queue_options,
    std::shared_ptr<TaskRunner> runner) {
  std::shared_ptr<DispatcherCore> core(
      new DispatcherCore(options, queue_options, std::move(runner)));
  ASSAY_RETURN_IF_ERROR(Annotate(core->Load(), "loading unfinished evaluations"));
  return core;
}

absl::Status DispatcherCore::Load() {
  ASSAY_ASSIGN_OR_RETURN(std::vector<v1::Worker> workers, options_.store->ListWorkers());
  ASSAY_ASSIGN_OR_RETURN(std::vector<UnfinishedEvaluation> unfinished,
                         options_.store->ListUnfinished());
  const absl::Time now = options_.clock->Now();
  const absl::Duration mono = Mono();
  std::map<std::string, std::string> first_workers;  // by name of the second run
  for (const UnfinishedEvaluation& entry : unfinished) {
    const std::string& first = entry.evaluation.confirms();
    if (first.empty()) continue;
    // When it cannot be read now, any worker will do.
    const absl::StatusOr<v1::Evaluation> confirmed = options_.store->GetEvaluation(first, false);
    if (confirmed.ok()) first_workers[entry.evaluation.name()] = confirmed->worker();
  }
  int64_t recovered = 0;
  absl::MutexLock lock(&mutex_);
  for (v1::Worker& worker : workers) {
    queue_.AddKnownWorker(worker.name(), worker.state() == v1::Worker::DRAINING);
    WorkerRow& row = rows_[worker.name()];
    row.register_time = FromProto(worker.register_time());
    row.completed_before = worker.completed_count();
    row.failures_before = worker.infrastructure_failure_count();
    row.description = std::make_shared<const v1::Worker>(std::move(worker));
  }
  for (UnfinishedEvaluation& entry : unfinished) {
    QueueItem item = ToItem(entry.evaluation, entry.fence, options_.attempts_max, now);
    const auto first_worker = first_workers.find(item.evaluation);
    if (first_worker != first_workers.end()) item.other_than = first_worker->second;
    if (entry.evaluation.state() != v1::RUNNING) {
      queue_.Enqueue(item, mono);
      continue;
    }
    ++recovered;
    item.attempts = std::max(0, item.attempts - 1);
    queue_.Recover(item, mono);
    const std::string name = entry.evaluation.name();
    running_[name].fence = entry.fence;
    running_[name].evaluation = std::move(entry.evaluation);
  }
  Log(LogLevel::kInfo, "dispatch_loaded",
      {{"unfinished", absl::StrCat(unfinished.size())},
       {"running", absl::StrCat(recovered)},
       {"workers", absl::StrCat(workers.size())}});
  return absl::OkStatus();
}

void DispatcherCore::Stop() {
  std::map<PollKey, std::deque<PollDone>> polls;
  std::map<std::string, Ends> ends;
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
    polls.swap(waiters_);
    ends.swap(ending_);
  }
  for (auto& [key, waiters] : polls) {
    for (PollDone& done : waiters) done(Stopping());
  }
  for (auto& [evaluation, entry] : ends) {
    for (AbandonDone& done : entry.dones) done(Stopping());
  }
}

void DispatcherCore::SetObserver(EvaluationObserver observer) { observer_ = std::move(observer); }

// --- Evaluations.

void DispatcherCore::Enqueue(const std::vector<v1::Evaluation>& evaluations) {
  Outbox out;
  const absl::Time now = options_.clock->Now();
  const absl::Duration mono = Mono();
  {
    absl::MutexLock lock(&mutex_);
    if (stopped_) return;  // durable: the next start finds them
    for (const v1::Evaluation& evaluation : evaluations) {
      if (evaluation.state() != v1::QUEUED) continue;
      queue_.Enqueue(ToItem(evaluation, 0, options_.attempts_max, now), mono);
    }
    Collect(&out);
  }
  Flush(std::move(out));
}

void DispatcherCore::EnqueueConfirmation(const std::optional<v1::Evaluation>& confirmation,
                                         const std::string& worker, Outbox* out) {
  if (stopped_ || !confirmation.has_value() || confirmation->state() != v1::QUEUED) return;
  QueueItem item = ToItem(*confirmation, 0, options_.attempts_max, options_.clock->Now());
  item.other_than = worker;
  queue_.Enqueue(item, Mono());
  Collect(out);
}

void DispatcherCore::Cancel(const std::string& evaluation, DispatchDone<v1::Evaluation> done) {
  bool stopped;
  {
    absl::MutexLock lock(&mutex_);
    stopped = stopped_;
  }
  if (stopped) {
    done(Stopping());
    return;
  }
  // The store orders it against everything else that happens to the evaluation.
  options_.store->RecordCancel(
      evaluation, options_.clock->Now(),
      [self = shared_from_this(), evaluation, done](absl::StatusOr<v1::Evaluation> result) {
        self->CancelDone(evaluation, std::move(result), done);
      });
}

absl::Status DispatcherCore::CheckCapacity(size_t count) {
  absl::MutexLock lock(&mutex_);
  if (stopped_) return Stopping();
  if (queue_.size() + count <= limits::kQueuedEvaluationsMax) return absl::OkStatus();
  return ErrorWithReason(
      absl::StatusCode::kResourceExhausted, "QUEUE_FULL",
      absl::StrCat("the queue holds ", queue_.size(), " evaluations and takes at most ",
                   limits::kQueuedEvaluationsMax, "; ", count, " more do not fit, try later"));
}

void DispatcherCore::Decorate(v1::Evaluation* evaluation) {
  const absl::Duration mono = Mono();
  absl::MutexLock lock(&mutex_);
  if (evaluation->state() == v1::RUNNING) {
    auto it = running_.find(evaluation->name());
    if (it != running_.end()) evaluation->set_stage(it->second.evaluation.stage());
  } else if (evaluation->state() == v1::QUEUED) {
    evaluation->set_waiting_reason(queue_.WaitingReason(evaluation->name(), mono));
  }
}

// --- The worker's side.

void DispatcherCore::Register(const internal::v1::RegisterWorkerRequest& request,
                              DispatchDone<internal::v1::RegisterWorkerResponse> done) {
  absl::StatusOr<v1::Worker> description = CheckRegistration(request);
  if (!description.ok()) {
    done(description.status());
    return;
  }
  WorkerRegistration registration;
  registration.worker = description->name();
  registration.lease_count_max = request.lease_count_max();
  for (const v1::Device& device : description->devices()) {
    registration.classes.push_back(device.kind());
    registration.classes.push_back(device.device_class());
  }
  for (const auto& held : request.held_leases()) registration.held.push_back(ToLease(held));

  absl::StatusOr<WorkerSession> session;
  Outbox out;
  {
    absl::MutexLock lock(&mutex_);
    if (stopped_) {
      session = Stopping();
    } else {
      session = queue_.Register(registration, Mono());
    }
    if (session.ok()) {
      WorkerRow& row = rows_[registration.worker];
      row.registered = true;
      row.register_time = options_.clock->Now();
      row.description = std::make_shared<const v1::Worker>(*std::move(description));
      WriteWorker(registration.worker, &out);
    }
    Collect(&out);
  }
  Flush(std::move(out));
  if (!session.ok()) {
    done(session.status());
    return;
  }
  internal::v1::RegisterWorkerResponse response;
  response.set_session(session->session);
  *response.mutable_lease_duration() = ToProto(queue_options_.lease_duration);
  for (const QueueLease& lease : session->kept) {
    auto* kept = response.add_kept_leases();
    kept->set_evaluation(lease.evaluation);
    kept->set_fence(lease.fence);
  }
  done(std::move(response));
}

void DispatcherCore::Acquire(const internal::v1::AcquireLeaseRequest& request,
                             DispatchDone<internal::v1::AcquireLeaseResponse> done) {
  if (request.poll_id().empty() || request.poll_id().size() > limits::kRequestIdBytesMax) {
    done(ErrorWithReason(absl::StatusCode::kInvalidArgument, "INVALID_POLL",
                         absl::StrCat("poll_id has ", request.poll_id().size(), " bytes; 1 to ",
                                      limits::kRequestIdBytesMax, " are allowed")));
    return;
  }
  const PollKey key(request.session(), request.poll_id());
  Outbox out;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Status status =
        stopped_ ? Stopping()
                 : queue_.Acquire(key.first, key.second, FromProto(request.wait()), Mono());
    if (status.ok()) {
      std::deque<PollDone>& waiters = waiters_[key];
      waiters.push_back(std::move(done));
      if (waiters.size() > kSharersMax) {
        out.push_back([oldest = std::move(waiters.front())] { oldest(TooManySharers("poll")); });
        waiters.pop_front();
      }
    } else {
      out.push_back([done = std::move(done), status] { done(status); });
    }
    Collect(&out);
  }
  Flush(std::move(out));
}

void DispatcherCore::ForgetPoll(const std::string& session, const std::string& poll_id) {
  Outbox out;
  {
    absl::MutexLock lock(&mutex_);
    auto it = waiters_.find({session, poll_id});
    if (it == waiters_.end()) return;  // answered already
    // Of several callers of one poll the oldest is the one that went away; were it another, its
    // worker would only ask again.
    out.push_back([gone = std::move(it->second.front())] {
      gone(ErrorWithReason(absl::StatusCode::kCancelled, "POLL_FORGOTTEN",
                           "the caller of this long poll went away"));
    });
    it->second.pop_front();
    if (it->second.empty()) {
      waiters_.erase(it);
      queue_.ForgetPoll(session, poll_id, Mono());
    }
    Collect(&out);
  }
  Flush(std::move(out));
}

void DispatcherCore::Renew(const internal::v1::RenewLeaseRequest& request,
                           DispatchDone<internal::v1::RenewLeaseResponse> done) {
  if (!IsStage(request.stage())) {
    done(ErrorWithReason(
        absl::StatusCode::kInvalidArgument, "INVALID_STAGE",
        absl::StrCat("a stage is at most ", kStageBytesMax, " characters of [A-Z_]")));
    return;
  }
  absl::StatusOr<RenewedLease> renewed;
  Outbox out;
  {
    absl::MutexLock lock(&mutex_);
    renewed = stopped_ ? absl::StatusOr<RenewedLease>(Stopping())
                       : queue_.Renew(request.session(), ToLease(request.ref()), Mono());
    auto it = running_.find(request.ref().evaluation());
    if (renewed.ok() && !renewed->cancel && !request.stage().empty() && it != running_.end() &&
        it->second.evaluation.stage() != request.stage()) {
      it->second.evaluation.set_stage(request.stage());
      out.push_back([this, evaluation = it->second.evaluation] { Observe(evaluation); });
    }
    Collect(&out);
  }
  Flush(std::move(out));
  if (!renewed.ok()) {
    done(renewed.status());
    return;
  }
  internal::v1::RenewLeaseResponse response;
  *response.mutable_duration() = ToProto(renewed->duration);
  response.set_cancel(renewed->cancel);
  response.set_drain(renewed->drain);
  done(std::move(response));
}

void DispatcherCore::Complete(const internal::v1::CompleteLeaseRequest& request,
                              DispatchDone<internal::v1::CompleteLeaseResponse> done) {
  if (request.outcome().verdict() == v1::VERDICT_UNSPECIFIED) {
    done(ErrorWithReason(absl::StatusCode::kInvalidArgument, "INVALID_OUTCOME",
                         "the outcome has no verdict; abandon the lease when there is none"));
    return;
  }
  const QueueLease lease = ToLease(request.ref());
  absl::StatusOr<CompleteStart> start;
  v1::Evaluation evaluation;
  std::shared_ptr<const v1::Worker> worker;
  bool may_confirm = false;
  Outbox out;
  {
    absl::MutexLock lock(&mutex_);
    may_confirm = queue_.size() <= options_.confirm_while_queued_max;
    start = stopped_ ? absl::StatusOr<CompleteStart>(Stopping())
                     : queue_.Complete(request.session(), lease, Mono());
    if (start.ok() && *start != CompleteStart::kAskStore) {
      std::vector<CompleteDone>& sharers = completing_[lease.evaluation];
      if (sharers.size() < kSharersMax) {
        sharers.push_back(std::move(done));
      } else {
        out.push_back([done = std::move(done)] { done(TooManySharers("completion")); });
      }
    }
    if (start.ok() && *start == CompleteStart::kRecord) {
      evaluation = running_[lease.evaluation].evaluation;
      worker = rows_[*queue_.SessionWorker(request.session())].description;
    }
    Collect(&out);
  }
  Flush(std::move(out));
  if (!start.ok()) {
    done(start.status());
  } else if (*start == CompleteStart::kRecord) {
    WriteCompletion(request, lease, evaluation, *worker, may_confirm);
  } else if (*start == CompleteStart::kAskStore) {
    AskStoreForCompletion(request, std::move(done));
  }
}

void DispatcherCore::Abandon(const internal::v1::AbandonLeaseRequest& request,
                             DispatchDone<internal::v1::AbandonLeaseResponse> done) {
  const QueueLease lease = ToLease(request.ref());
  const AttemptError error{request.error().code(), request.error().reason(),
                           request.error().message()};
  absl::Status answer;
  bool answer_now = true;
  Outbox out;
  {
    absl::MutexLock lock(&mutex_);
    const absl::StatusOr<AbandonStart> start =
        stopped_ ? absl::StatusOr<AbandonStart>(Stopping())
                 : queue_.Abandon(request.session(), lease, error, Mono());
    answer = start.status();
    if (start.ok() && *start == AbandonStart::kEnding) {
      Ends& ends = ending_[lease.evaluation];
      ends.fence = lease.fence;
      if (ends.dones.size() < kSharersMax) {
        ends.dones.push_back(done);
        answer_now = false;
      } else {
        answer = TooManySharers("abandon");
      }
    }
    Collect(&out);
  }
  Flush(std::move(out));
  if (!answer_now) return;
  if (answer.ok()) {
    done(internal::v1::AbandonLeaseResponse());
  } else {
    done(answer);
  }
}

// --- The fleet.

std::vector<v1::Worker> DispatcherCore::Workers() {
  std::vector<v1::Worker> workers;
  absl::MutexLock lock(&mutex_);
  workers.reserve(rows_.size());
  for (const auto& [name, row] : rows_) workers.push_back(MakeWorker(name));
  return workers;
}

absl::StatusOr<v1::Worker> DispatcherCore::SetDraining(std::string_view worker, bool draining) {
  const std::string name(worker);
  absl::StatusOr<v1::Worker> result;
  Outbox out;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Status status = queue_.SetDraining(name, draining, Mono());
    if (status.ok()) {
      result = MakeWorker(name);
      WriteWorker(name, &out);
    } else {
      result = status;
    }
    Collect(&out);
  }
  Flush(std::move(out));
  return result;
}

DispatchCounters DispatcherCore::Counters() {
  absl::MutexLock lock(&mutex_);
  const QueueCounters queue = queue_.Counters(Mono());
  DispatchCounters counters;
  counters.queued = queue.queued;
  counters.leased = queue.leased;
  counters.unplaceable = queue.unplaceable;
  counters.oldest_queued_seconds = queue.oldest_queued_seconds;
  counters.leases_granted_total = queue.granted_total;
  counters.leases_expired_total = queue.expired_total;
  counters.leases_abandoned_total = queue.abandoned_total;
  counters.completions_total = queue.completed_total;
  counters.completions_repeated_total = completions_repeated_;
  counters.fenced_total = queue.fenced_total + fenced_by_store_;
  counters.workers_active = queue.workers_active;
  return counters;
}

}  // namespace assay
