// The state of a running block and of its warps. One host thread runs a block at a time; a
// cooperative launch has many alive.
#ifndef ASSAY_EMULATOR_EXECUTE_BLOCK_H_
#define ASSAY_EMULATOR_EXECUTE_BLOCK_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "emulator/execute/lanes.h"
#include "emulator/execute/launch_state.h"
#include "emulator/memory/race.h"
#include "emulator/memory/sync_graph.h"
#include "emulator/report.h"

namespace assay::emulator {

// Lanes of a warp that are at the same operation.
struct LaneGroup {
  uint32_t pc = 0;
  uint32_t mask = 0;
  // Waits at `pc` until all live lanes of it are there; 0: ready.
  uint32_t members = 0;
};

// A cp.async that was issued and not waited for; the data were read at issue.
struct AsyncCopy {
  uint32_t pc = 0;
  uint8_t lane = 0;
  uint8_t bytes = 0;
  uint32_t destination = 0;  // shared address
  alignas(16) std::byte data[16];
};

struct WarpState : Warp {
  std::vector<std::byte> register_file;
  std::vector<LaneGroup> groups;  // those that do not run
  uint32_t at_barrier = 0;        // lanes that wait at a barrier of the block
  bool forced = false;            // the next Converge goes on with the lanes that are there
  bool fenced = false;            // has executed a fence: its atomics release
  std::vector<uint32_t> known;    // clocks of the block's warps; its own is the present one
  RaceView shared_view;
  RaceView global_view;
  std::deque<std::vector<AsyncCopy>> async_groups;  // committed, oldest first
  std::vector<AsyncCopy> async_open;
  uint64_t executed = 0;  // operations, for the clock registers
  uint32_t choices = 0;   // between groups

  bool finished() const { return live == 0; }
  bool can_run() const;
};

// One of the 16 named barriers.
struct BarrierState {
  struct Waiter {
    uint32_t warp = 0;
    uint32_t pc = 0;  // of the barrier operation
    uint32_t mask = 0;
    bool waits = true;  // bar.arrive does not
  };
  std::vector<Waiter> waiters;
  uint32_t arrived = 0;    // threads, as they count towards `expected`
  uint32_t lanes = 0;      // threads, as they are
  uint32_t expected = 0;   // threads; 0: all that live
  uint32_t set_count = 0;  // of predicates that were true, for reductions
};

class Block {
 public:
  // `executor` and what it points to must outlive the block.
  Block(LaunchState* launch, Executor* executor);

  // Begins block number `linear` of the grid anew.
  void Start(uint64_t linear);

  // Runs until the block is finished (true), the launch stops (true), or about `quantum` operations
  // were executed (false).
  bool Run(uint64_t quantum);

  LaunchState& launch() { return launch_; }
  Executor& executor() { return executor_; }
  const Program& program() const { return launch_.program; }
  WarpState& warp(uint32_t index) { return *warps_[index]; }
  uint32_t warp_count() const { return static_cast<uint32_t>(warps_.size()); }
  uint32_t thread_count() const { return thread_count_; }
  uint64_t linear() const { return linear_; }
  const Dim3& index() const { return index_; }
  Dim3 ThreadIndex(uint32_t thread) const;
  uint64_t Random();

  // Shared memory from address kSharedBase on, its shadow and its race words.
  uint32_t shared_bytes() const { return shared_bytes_; }
  std::byte* shared() { return reinterpret_cast<std::byte*>(shared_.data()); }
  uint64_t* shared_initialized() { return shared_initialized_.data(); }
  uint64_t* shared_pending() { return shared_pending_.data(); }
  uint64_t* shared_race() { return shared_race_.data(); }
  // Eight for every 4 bytes; nullptr until they are wanted.
  uint64_t* shared_byte_race(bool wanted);
  // Of one thread, from address kLocalBase on.
  std::byte* local(uint32_t thread) { return local_.data() + size_t{thread} * local_stride_; }
  uint64_t* local_initialized(uint32_t thread) {
    return local_initialized_.data() + size_t{thread} * local_stride_ / 64;
  }
  uint32_t local_bytes() const { return program().local_bytes; }

  // A group arrives at barrier `id`; false when it must wait (it was parked, or a fault was
  // reported).
  bool ArriveAtBarrier(WarpState* warp, const Op& op, uint32_t mask, uint32_t id, uint32_t expected,
                       bool waits, uint32_t set_count);
  // After lanes have exited: barriers that waited for them alone open.
  void CheckBarriers();

  // `warp` has seen all that its warps did before; its later accesses are told apart from its
  // earlier ones.
  void StepClock(WarpState* warp);
  void JoinKnown(WarpState* warp, const std::vector<uint32_t>& known);
  void RefreshViews(WarpState* warp);
  SyncGraph& shared_sync() { return shared_sync_; }
  // Clocks released into an mbarrier, by shared address.
  std::unordered_map<uint32_t, std::vector<uint32_t>>& mbarrier_known() { return mbarrier_known_; }

  std::string* output() { return &output_; }

 private:
  friend struct WarpState;
  void StartWarp(WarpState* warp);
  void FillSpecials(WarpState* warp);
  void InitWarp(WarpState* warp, uint32_t index);
  // Runs one warp; what it executed comes off the quantum.
  void RunWarp(WarpState* warp, uint64_t quantum);
  bool PickGroup(WarpState* warp);
  bool ForceStuckGroup(WarpState* warp);
  void ReportDeadlock();
  void OpenBarrier(BarrierState* barrier, uint32_t id);
  WarpState* NextWarp();
  void Finish();

  LaunchState& launch_;
  Executor& executor_;
  std::vector<std::unique_ptr<WarpState>> warps_;
  uint32_t thread_count_ = 0;
  uint32_t next_warp_ = 0;
  uint64_t linear_ = 0;
  Dim3 index_{0, 0, 0};
  uint64_t random_ = 0;
  uint32_t shared_bytes_ = 0;
  std::vector<uint64_t> shared_;
  std::vector<uint64_t> shared_initialized_;
  std::vector<uint64_t> shared_pending_;
  std::vector<uint64_t> shared_race_;
  std::vector<uint64_t> shared_byte_race_;
  size_t local_stride_ = 0;  // a multiple of 64
  std::vector<std::byte> local_;
  std::vector<uint64_t> local_initialized_;
  BarrierState barriers_[16];
  uint32_t epoch_ = 1;         // barriers of all threads so far
  bool partial_sync_ = false;  // a part met since
  SyncGraph shared_sync_;
  std::unordered_map<uint32_t, std::vector<uint32_t>> mbarrier_known_;
  std::string output_;
};

inline WarpState* StateOf(Warp* warp) { return static_cast<WarpState*>(warp); }

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_EXECUTE_BLOCK_H_
