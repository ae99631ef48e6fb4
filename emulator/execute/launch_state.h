// What the host threads of one launch share, and what each has for itself.
#ifndef ASSAY_EMULATOR_EXECUTE_LAUNCH_STATE_H_
#define ASSAY_EMULATOR_EXECUTE_LAUNCH_STATE_H_

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "emulator/engine.h"
#include "emulator/execute/lane_pattern.h"
#include "emulator/memory/place_locks.h"
#include "emulator/memory/sync_graph.h"
#include "emulator/report.h"

namespace assay::emulator {

// Faults of a launch, each (kind, operation) once. Thread-safe.
class FaultLog {
 public:
  // True when it is the first of its kind at this operation, so that `describe` was called for the
  // rest of it.
  template <typename F>
  void Add(FaultKind kind, uint32_t pc, F&& describe) {
    const absl::MutexLock lock(&mutex_);
    const auto [it, is_new] = index_.try_emplace({kind, pc}, faults_.size());
    if (!is_new) {
      if (it->second < faults_.size()) ++faults_[it->second].count;
      return;
    }
    if (faults_.size() >= kFaultsMax) {
      it->second = kFaultsMax;
      return;
    }
    faults_.push_back(describe());
  }
  // So many more like one that was added.
  void Count(FaultKind kind, uint32_t pc, uint64_t more) {
    const absl::MutexLock lock(&mutex_);
    const auto it = index_.find({kind, pc});
    if (it != index_.end() && it->second < faults_.size()) faults_[it->second].count += more;
  }
  std::vector<Fault> Take();

 private:
  absl::Mutex mutex_;
  std::map<std::pair<FaultKind, uint32_t>, size_t> index_ ABSL_GUARDED_BY(mutex_);
  std::vector<Fault> faults_ ABSL_GUARDED_BY(mutex_);
};

// Shared by the host threads of a launch.
struct LaunchState {
  LaunchState(const Program& p, std::span<const std::byte> a, const LaunchOptions& o,
              DeviceMemory* m)
      : program(p),
        arguments(a),
        options(o),
        memory(m),
        sync_budget(o.sync_bytes_max),
        instructions_left(static_cast<int64_t>(o.instructions_max)),
        cpu_ns_left(o.cpu_ns_max) {}

  const Program& program;
  const std::span<const std::byte> arguments;
  const LaunchOptions& options;
  DeviceMemory* const memory;
  uint32_t generation = 1;
  bool races_in_global = true;
  std::unique_ptr<PlaceLocks> place_locks;  // nullptr: there is one host thread, or nothing to see
  SyncBudget sync_budget;                   // of all sync graphs of the launch
  SyncGraph sync{&sync_budget};
  FaultLog faults;
  // Each in a cache line of its own: the one is read all the time, the other written often.
  alignas(64) std::atomic<bool> stop{false};
  alignas(64) std::atomic<int64_t> instructions_left;
  std::atomic<int64_t> cpu_ns_left;
  std::atomic<uint64_t> output_bytes{0};
  uint64_t grid_workspace = 0;  // device address of the barrier of a cooperative launch; 0: none
};

// The allocation that an operation touched last, so that most lookups are two comparisons.
struct AllocationSlot {
  uint64_t address = 0;
  uint64_t bytes = 0;  // 0: nothing yet, or an allocation that must not be touched
  std::byte* host = nullptr;
  uint64_t* initialized = nullptr;
  uint64_t* race = nullptr;
  uint64_t* byte_race = nullptr;
  bool writable = false;
  bool skip_race = false;  // nobody may write it
};

// How often each operation ran. Kept as differences, since most run in rows.
class OpCounts {
 public:
  explicit OpCounts(size_t op_count) : steps_(op_count) { steps_.emplace_back(); }

  // Operations from `first` to before `end` ran for the lanes of `mask`.
  void AddRow(uint32_t first, uint32_t end, uint32_t mask) { Add(first, end, 1, Lanes(mask)); }
  // Of a row of `active` lanes, only those of `mask` executed `op`.
  void Leave(uint32_t op, uint32_t active, uint32_t mask) {
    Add(op, op + 1, mask == 0 ? ~uint64_t{0} : 0, Lanes(mask) - Lanes(active));
  }
  // Calls f(operation, warps, threads) for all.
  template <typename F>
  void Each(F&& f) const {
    Step sum;
    for (size_t i = 0; i + 1 < steps_.size(); ++i) {
      sum.warps += steps_[i].warps;
      sum.threads += steps_[i].threads;
      f(i, sum.warps, sum.threads);
    }
  }

 private:
  struct Step {
    uint64_t warps = 0;
    uint64_t threads = 0;
  };
  static uint64_t Lanes(uint32_t mask) { return static_cast<uint64_t>(std::popcount(mask)); }
  void Add(uint32_t first, uint32_t end, uint64_t warps, uint64_t threads) {
    steps_[first].warps += warps;
    steps_[first].threads += threads;
    steps_[end].warps -= warps;
    steps_[end].threads -= threads;
  }

  std::vector<Step> steps_;
};

// How many blocks that are not at their end each of `shares` host threads keeps beside the one that
// it runs, when a block takes so much of the host's memory.
size_t ResidentBlocks(uint64_t block_bytes, int shares);

// About so many plain operations lie between two looks at the clock of CPU time.
inline constexpr uint64_t kMeteredEvery = 4096;

// What one host thread has for itself.
struct Executor {
  explicit Executor(size_t op_count)
      : op_counts(op_count), slots(op_count), patterns(op_count), known_faults(op_count) {}

  OpCounts op_counts;
  std::vector<AllocationSlot> slots;                   // by operation
  std::vector<std::unique_ptr<LanePattern>> patterns;  // by operation; nullptr: none yet
  Counters counters;                   // memory and control; the rest follows from op_counts
  std::vector<uint32_t> known_faults;  // kinds that were added to the log, as bits, by operation
  std::map<std::pair<FaultKind, uint32_t>, uint64_t> more_faults;  // of these
  // Steps whenever what is known of accesses to shared memory may change other than by reads, and
  // when another block runs.
  uint64_t shared_version = 1;
  // Work since the last look at the clock. Every launch is looked at after its first turn, so that
  // many short ones are charged too.
  uint64_t unmetered = kMeteredEvery;
  int64_t cpu_ns_charged = 0;  // of the thread's CPU time
};

// CPU time that the calling thread has had.
int64_t ThreadCpuNs();

// Charges the launch for the CPU time that the calling thread, which `executor` is of, has had
// since it was last charged. What is left; at most 0 when it is used up.
int64_t ChargeTime(LaunchState* launch, Executor* executor);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_EXECUTE_LAUNCH_STATE_H_
