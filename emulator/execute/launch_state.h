// What the host threads of one launch share, and what each has for itself.
#ifndef ASSAY_EMULATOR_EXECUTE_LAUNCH_STATE_H_
#define ASSAY_EMULATOR_EXECUTE_LAUNCH_STATE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "emulator/engine.h"
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
        instructions_left(static_cast<int64_t>(o.instructions_max)) {}

  const Program& program;
  const std::span<const std::byte> arguments;
  const LaunchOptions& options;
  DeviceMemory* const memory;
  uint32_t generation = 1;
  bool races_in_global = true;
  SyncGraph sync;
  FaultLog faults;
  std::atomic<bool> stop{false};
  std::atomic<int64_t> instructions_left;
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
  bool writable = false;
  bool skip_race = false;  // nobody may write it
};

// How the lanes of an operation lay to each other when it last touched shared memory, and what
// follows from that: mostly they lie the same way the next time.
struct LanePattern {
  uint32_t mask = 0;      // 0: nothing yet
  uint32_t first = 0;     // of the lanes that touch the same place, one each
  uint32_t repeated = 0;  // of those, the ones that are not alone
  uint64_t conflicts = 0;
  alignas(32) uint64_t relative[kLanes] = {};  // offsets from that of the mask's first lane
};

// How often an operation ran.
struct OpCount {
  uint64_t warps = 0;
  uint64_t threads = 0;
};

// What one host thread has for itself.
struct Executor {
  explicit Executor(size_t op_count) : op_counts(op_count), slots(op_count), patterns(op_count) {}

  std::vector<OpCount> op_counts;     // by operation
  std::vector<AllocationSlot> slots;  // by operation
  std::vector<LanePattern> patterns;  // by operation
  Counters counters;                  // memory and control; the rest follows from op_counts
};

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_EXECUTE_LAUNCH_STATE_H_
