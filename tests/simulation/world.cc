#include "tests/simulation/world.h"

#include <cstdio>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/dispatch/times.h"
#include "store/confirmation.h"
#include "tests/simulation/actors.h"

namespace assay::simulation {
namespace {

constexpr int kAttemptsMax = 3;
constexpr absl::Duration kTickInterval = absl::Milliseconds(250);

}  // namespace

// Tasks of one start of the coordinator; a crash forgets them.
class World::Runner : public TaskRunner {
 public:
  Runner(World* world, uint64_t start) : world_(world), start_(start) {}
  void Run(std::function<void()> task) override {
    world_->loop_.After(world_->loop_.Between(absl::ZeroDuration(), absl::Milliseconds(20)),
                        [world = world_, start = start_, task = std::move(task)] {
                          if (world->core_ != nullptr && world->server_start_ == start) task();
                        });
  }

 private:
  World* const world_;
  const uint64_t start_;
};

World::World(uint64_t seed, bool verbose)
    : verbose_(verbose), loop_(seed), checker_(kAttemptsMax, [this] { return loop_.now(); }) {
  Random& random = loop_.random();
  const double harshness = random.Chance(0.2) ? 0 : random.Uniform();
  faults_.drop = 0.10 * harshness;
  faults_.duplicate = 0.10 * harshness;
  faults_.long_delay = 0.05 * harshness;
  faults_.write_fails = random.Chance(0.5) ? 0.15 * harshness : 0;
  faults_.lost_answer = random.Chance(0.3) ? 0.05 * harshness : 0;
  faults_.read_fails = random.Chance(0.3) ? 0.05 * harshness : 0;
  faults_.slow_disk = random.Chance(0.5) ? 0.05 * harshness : 0;
  if (random.Chance(0.7)) faults_.server_crash_every = absl::Seconds(15 + random.Below(60));
  if (random.Chance(0.7)) faults_.worker_crash_every = absl::Seconds(10 + random.Below(60));
  disk_.checker = &checker_;
  if (verbose) checker_.SetTrace([this](const std::string& line) { TraceLine(line); });
  disk_.on_write = [this] { OnWrite(); };
  disk_.lose_answer = [this] { return loop_.random().Chance(faults_.lost_answer); };
  disk_.fail_read = [this] { return loop_.random().Chance(faults_.read_fails); };
}

// What still waits belongs to a coordinator that is gone.
World::~World() { disk_.disk.DropPending(); }

void World::TraceLine(const std::string& line) {
  std::printf("%12s  %s\n", absl::FormatDuration(loop_.now()).c_str(), line.c_str());
}

// --- Network.

void World::Send(std::function<void()> deliver) {
  Random& random = loop_.random();
  if (random.Chance(faults_.drop)) return;
  const int copies = random.Chance(faults_.duplicate) ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    absl::Duration delay = loop_.Between(absl::Milliseconds(1), absl::Milliseconds(30));
    if (random.Chance(faults_.long_delay)) delay = loop_.Between(delay, absl::Seconds(40));
    loop_.After(delay, deliver);
  }
}

// --- Disk.

void World::OnWrite() {
  if (commit_scheduled_) return;
  commit_scheduled_ = true;
  absl::Duration delay = loop_.Between(absl::Milliseconds(1), absl::Milliseconds(20));
  if (loop_.random().Chance(faults_.slow_disk)) delay = loop_.Between(delay, absl::Seconds(10));
  loop_.After(delay, [this] { CommitGroup(); });
}

void World::CommitGroup() {
  commit_scheduled_ = false;
  for (size_t left = disk_.disk.pending_count(); left > 0; --left) {
    if (loop_.random().Chance(faults_.write_fails)) {
      disk_.disk.FailNextWrite(ErrorWithReason(absl::StatusCode::kResourceExhausted, "STORAGE_FULL",
                                               "the disk is full"));
    }
    disk_.disk.RunOne();
  }
  if (disk_.disk.pending_count() > 0) OnWrite();
}

// --- Coordinator.

void World::StartServer() {
  ++server_start_;
  store_ = std::make_unique<CheckedStore>(&disk_);
  DispatcherOptions options;
  options.clock = loop_.clock();
  options.store = store_.get();
  options.attempts_max = kAttemptsMax;
  options.identity = [](const v1::Evaluation& evaluation, const v1::Worker&, const v1::Device&) {
    return absl::StrCat("identity of ", evaluation.name());
  };
  QueueOptions queue_options;
  queue_options.instance = absl::StrCat("start", server_start_);
  auto core =
      DispatcherCore::Create(options, queue_options, std::make_shared<Runner>(this, server_start_));
  if (!core.ok()) {
    checker_.Fail(absl::StrCat("the coordinator does not start: ", core.status().ToString()));
    return;
  }
  core_ = *std::move(core);
  core_->SetObserver([this](const v1::Evaluation& e) { checker_.OnObserved(e); });
  Trace("coordinator starts");
  TickServer();
}

void World::TickServer() {
  core_->Tick();
  loop_.After(kTickInterval, [this, start = server_start_] {
    if (core_ != nullptr && server_start_ == start) TickServer();
  });
}

// Of the writes that wait, a prefix reaches the disk, and nobody hears of it.
void World::CrashServer() {
  if (core_ == nullptr) return;
  ++tally_.server_crashes;
  const size_t pending = disk_.disk.pending_count();
  const size_t applied = loop_.random().Below(pending + 1);
  Trace("coordinator crashes; ", applied, " of ", pending, " waiting writes reach the disk");
  disk_.muted = true;
  for (size_t i = 0; i < applied; ++i) disk_.disk.RunOne();
  disk_.disk.DropPending();
  disk_.muted = false;
  core_.reset();
  store_.reset();
}

void World::Create(const v1::Evaluation& requested, const std::string& request_id,
                   DispatchDone<v1::Evaluation> done) {
  const absl::Status capacity = core_->CheckCapacity(1);
  if (!capacity.ok()) {
    done(capacity);
    return;
  }
  NewEvaluation created;
  created.evaluation = requested;
  created.evaluation.set_name(absl::StrCat("evaluations/e", ++evaluation_count_));
  created.evaluation.set_candidate("candidates/c1");
  created.evaluation.set_state(v1::QUEUED);
  *created.evaluation.mutable_create_time() = ToProto(loop_.clock()->Now());
  created.request_id = request_id;
  created.request_digest = "same";
  store_->CreateEvaluations({created},
                            [this, done](absl::StatusOr<std::vector<CreatedEvaluation>> result) {
                              if (!result.ok()) {
                                done(result.status());
                                return;
                              }
                              const CreatedEvaluation& first = result->front();
                              // Handing over what existed already is needless and must be harmless.
                              if (!first.existed || loop_.random().Chance(0.5))
                                core_->Enqueue({first.evaluation});
                              checker_.OnCreateAcknowledged(first.evaluation.name());
                              done(first.evaluation);
                            });
}

// --- The life of a seed.

void World::ScheduleCrashes() {
  if (faults_.server_crash_every != absl::InfiniteDuration()) {
    loop_.After(loop_.Between(absl::Seconds(1), 2 * faults_.server_crash_every), [this] {
      if (healing_) return;
      CrashServer();
      loop_.After(loop_.Between(absl::Milliseconds(100), absl::Seconds(45)), [this] {
        if (core_ == nullptr) StartServer();
        ScheduleCrashes();
      });
    });
  }
}

void World::Run() {
  v1::Problem problem;
  problem.set_name("problems/gelu");
  problem.set_version(1);
  problem.set_digest("d1");
  disk_.disk.CreateProblem(problem, [](absl::StatusOr<v1::Problem>) {});
  v1::ProblemAudit audit;
  audit.set_problem(problem.name());
  audit.set_problem_version(problem.version());
  audit.set_problem_digest(problem.digest());
  audit.set_passed(true);
  disk_.disk.RecordProblemAudit(audit, absl::UnixEpoch(), [](absl::StatusOr<v1::Problem>) {});
  v1::Candidate candidate;
  candidate.set_name("candidates/c1");
  candidate.set_digest("c1");
  candidate.mutable_spec()->set_problem("gelu");
  disk_.disk.CreateCandidate(candidate, "", [](absl::StatusOr<v1::Candidate>) {});
  disk_.disk.RunPending();

  StartServer();
  Random& random = loop_.random();
  const int worker_count = 2 + static_cast<int>(random.Below(3));
  for (int i = 0; i < worker_count; ++i) {
    workers_.push_back(std::make_unique<SimWorker>(this, absl::StrCat("w", i),
                                                   i % 2 == 0 ? "cpu-a" : "cpu-b",
                                                   1 + static_cast<int>(random.Below(3))));
    SimWorker* worker = workers_.back().get();
    loop_.After(loop_.Between(absl::ZeroDuration(), absl::Seconds(5)),
                [worker] { worker->Start(); });
  }
  const absl::Duration period = absl::Seconds(30 + random.Below(60));
  for (int i = 0; i < 2; ++i) {
    clients_.push_back(std::make_unique<SimClient>(this, absl::StrCat("client", i)));
    clients_.back()->Start(4 + static_cast<int>(random.Below(12)), period);
  }
  ScheduleCrashes();
  if (faults_.worker_crash_every != absl::InfiniteDuration()) {
    for (auto& worker : workers_) {
      absl::Duration at;
      while (at < period * 2) {
        at += loop_.Between(absl::Seconds(1), 2 * faults_.worker_crash_every);
        loop_.After(at, [this, w = worker.get()] {
          if (healing_ || !w->up()) return;
          ++tally_.worker_crashes;
          w->Crash();
          loop_.After(loop_.Between(absl::Milliseconds(100), absl::Seconds(20)), [w] {
            if (!w->up()) w->Start();
          });
        });
      }
    }
  }
  // An operator drains and undrains.
  if (random.Chance(0.3)) {
    loop_.After(period * random.Uniform(), [this] {
      if (core_ != nullptr) core_->SetDraining("workers/w0", true).IgnoreError();
    });
  }

  loop_.RunUntil(period * 1.5, [this] { return !violations().empty(); });
  Heal();
  loop_.RunUntil(loop_.now() + absl::Hours(3),
                 [this] { return !violations().empty() || Settled(); });
  if (violations().empty()) CheckEnd();
}

void World::Heal() {
  Trace("--- healing");
  healing_ = true;
  faults_ = Faults();
  if (core_ == nullptr) StartServer();
  for (auto& worker : workers_) {
    if (!worker->up()) worker->Start();
    // Not known before its first registration.
    core_->SetDraining("workers/" + worker->name(), false).IgnoreError();
  }
}

// Every client has its answers and everything that some worker can run is final.
bool World::Settled() {
  if (loop_.event_count() % 64 != 0) return false;
  for (auto& client : clients_) {
    if (!client->done()) return false;
  }
  const auto unfinished = disk_.disk.ListUnfinished();
  for (const UnfinishedEvaluation& entry : *unfinished) {
    if (entry.evaluation.device_class() != "cuda") return false;
  }
  return disk_.disk.pending_count() == 0;
}

// What has rank 1 is confirmed, and nothing waits for a second run that has said its word.
void World::CheckBoards() {
  const auto entries = disk_.disk.Leaderboard({.entries_max = 1000});
  for (const v1::LeaderboardEntry& entry : *entries) {
    const bool pending = entry.confirmation() == v1::LeaderboardEntry::PENDING;
    if (entry.rank() == 1 && entry.confirmation() != v1::LeaderboardEntry::CONFIRMED) {
      checker_.Fail(absl::StrCat(entry.evaluation(), " ranks first and is not confirmed"));
    }
    if (!pending) continue;
    const auto second = disk_.disk.GetEvaluation(ConfirmationName(entry.evaluation()), false);
    if (!second.ok() || second->state() == v1::SUCCEEDED) {
      checker_.Fail(absl::StrCat(entry.evaluation(), " is pending; its second run: ",
                                 second.ok() ? "SUCCEEDED" : second.status().ToString()));
    }
    const auto first = disk_.disk.GetEvaluation(entry.evaluation(), false);
    if (!absl::StrContains(first->outcome().message(), "Not confirmed: the second run")) {
      checker_.Fail(absl::StrCat(entry.evaluation(), " is pending and does not say why"));
    }
  }
}

void World::CheckEnd() {
  for (auto& client : clients_) {
    if (!client->done()) checker_.Fail("a client never got its answer");
  }
  // Let timers of the last seconds pass: placement grace, polls, late messages.
  loop_.RunUntil(loop_.now() + absl::Seconds(45), [] { return false; });
  int waiting = 0;
  const auto unfinished = disk_.disk.ListUnfinished();
  for (const UnfinishedEvaluation& entry : *unfinished) {
    v1::Evaluation evaluation = entry.evaluation;
    core_->Decorate(&evaluation);
    if (evaluation.device_class() != "cuda") {
      checker_.Fail(absl::StrCat(evaluation.name(), " is stuck: ",
                                 v1::State_Name(evaluation.state()), " fence ", entry.fence));
    } else if (evaluation.waiting_reason().find(
                   "no registered worker offers device class 'cuda'; registered: cpu") ==
               std::string::npos) {
      checker_.Fail(absl::StrCat(evaluation.name(), " does not say why it waits: '",
                                 evaluation.waiting_reason(), "'"));
    }
    ++waiting;
  }
  const DispatchCounters counters = core_->Counters();
  if (counters.leased != 0 || counters.queued != waiting || counters.unplaceable != waiting) {
    checker_.Fail(absl::StrCat("the queue still counts ", counters.queued, " queued, ",
                               counters.unplaceable, " unplaceable, ", counters.leased, " leased; ",
                               waiting, " wait"));
  }
  if (!violations().empty()) return;
  Page all;
  all.size = 1000;
  const auto listed = disk_.disk.ListEvaluations({}, all);
  std::set<std::string> durable;
  for (const v1::Evaluation& evaluation : listed->items) {
    durable.insert(evaluation.name());
    ++tally_.created;
    tally_.succeeded += evaluation.state() == v1::SUCCEEDED;
    tally_.failed += evaluation.state() == v1::FAILED;
    tally_.cancelled += evaluation.state() == v1::CANCELLED;
    tally_.confirmations += !evaluation.confirms().empty();
    if (evaluation.state() == v1::QUEUED) continue;
    checker_.CheckFinal(evaluation.name(), evaluation.state());
  }
  tally_.elsewhere = checker_.elsewhere_count();
  tally_.same_worker = checker_.same_worker_count();
  CheckBoards();
  for (const std::string& name : checker_.acknowledged()) {
    if (durable.count(name) == 0) checker_.Fail(absl::StrCat(name, " was acknowledged and lost"));
  }
}

}  // namespace assay::simulation
