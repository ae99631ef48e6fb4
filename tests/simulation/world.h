// The simulated world: one coordinator (the real DispatcherCore on a simulated disk), workers,
// clients, and the network between them, on one thread and one seed.
#ifndef ASSAY_TESTS_SIMULATION_WORLD_H_
#define ASSAY_TESTS_SIMULATION_WORLD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/dispatch/dispatcher_core.h"
#include "tests/simulation/checked_store.h"
#include "tests/simulation/checker.h"
#include "tests/simulation/event_loop.h"

namespace assay::simulation {

// Probabilities and scales; all zero in the healing phase.
struct Faults {
  double drop = 0;
  double duplicate = 0;
  double long_delay = 0;   // a message is late by up to 40 s
  double write_fails = 0;  // STORAGE_FULL
  double lost_answer = 0;  // applied, reported as failed
  double read_fails = 0;
  double slow_disk = 0;  // a group takes up to 10 s
  absl::Duration server_crash_every = absl::InfiniteDuration();
  absl::Duration worker_crash_every = absl::InfiniteDuration();
};

class World {
 public:
  World(uint64_t seed, bool verbose);
  ~World();

  // The whole life of one seed: faults, healing, final checks.
  void Run();

  const std::vector<std::string>& violations() const { return checker_.violations(); }
  uint64_t event_count() const { return loop_.event_count(); }
  struct Tally {
    int succeeded = 0, failed = 0, cancelled = 0, created = 0, server_crashes = 0,
        worker_crashes = 0, confirmations = 0, elsewhere = 0, same_worker = 0;
  };
  const Tally& tally() const { return tally_; }

  // --- For workers and clients.
  EventLoop& loop() { return loop_; }
  Checker& checker() { return checker_; }
  DispatcherCore* core() { return core_.get(); }
  bool healing() const { return healing_; }
  template <typename... Args>
  void Trace(const Args&... args) {
    if (verbose_) TraceLine(absl::StrCat(args...));
  }

  // A remote call: `request` runs at the coordinator with a reply function, `done` here, exactly
  // once. `gone` runs at the coordinator when the caller gave up.
  template <typename Response>
  void Call(absl::Duration timeout, std::function<void(DispatchDone<Response>)> request,
            DispatchDone<Response> done, std::function<void()> gone = nullptr);

  // The coordinator's CreateEvaluation, as the service does it.
  void Create(const v1::Evaluation& evaluation, const std::string& request_id,
              DispatchDone<v1::Evaluation> done);

 private:
  class Runner;
  friend class Runner;

  void Send(std::function<void()> deliver);  // one message, subject to faults
  void StartServer();
  void CrashServer();
  void ScheduleCrashes();
  void TickServer();
  void OnWrite();
  void CommitGroup();
  void Heal();
  bool Settled();
  void CheckBoards();
  void CheckEnd();
  void TraceLine(const std::string& line);

  const bool verbose_;
  EventLoop loop_;
  Checker checker_;
  Faults faults_;
  bool healing_ = false;
  DiskControl disk_;
  bool commit_scheduled_ = false;
  uint64_t server_start_ = 0;  // counts
  uint64_t evaluation_count_ = 0;
  std::unique_ptr<CheckedStore> store_;
  std::shared_ptr<DispatcherCore> core_;  // null: down
  std::vector<std::unique_ptr<class SimWorker>> workers_;
  std::vector<std::unique_ptr<class SimClient>> clients_;
  Tally tally_;
};

template <typename Response>
void World::Call(absl::Duration timeout, std::function<void(DispatchDone<Response>)> request,
                 DispatchDone<Response> done, std::function<void()> gone) {
  struct Pending {
    DispatchDone<Response> done;
  };
  auto pending = std::make_shared<Pending>(Pending{std::move(done)});
  auto finish = [pending](absl::StatusOr<Response> result) {
    if (pending->done == nullptr) return;
    std::exchange(pending->done, nullptr)(std::move(result));
  };
  loop_.After(timeout, [this, pending, finish, gone] {
    if (pending->done == nullptr) return;
    if (gone != nullptr) {
      Send([this, gone] {
        if (core_ != nullptr) gone();
      });
    }
    finish(absl::DeadlineExceededError("no answer"));
  });
  Send([this, request = std::move(request), finish] {
    if (core_ == nullptr) {
      if (loop_.random().Chance(0.5)) Send([finish] { finish(absl::UnavailableError("down")); });
      return;
    }
    request([this, finish](absl::StatusOr<Response> result) {
      Send([finish, result = std::move(result)] { finish(result); });
    });
  });
}

}  // namespace assay::simulation

#endif  // ASSAY_TESTS_SIMULATION_WORLD_H_
