#include <algorithm>
#include <ctime>
#include <numeric>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/status.h"
#include "emulator/engine.h"
#include "emulator/execute/block.h"
#include "emulator/execute/launch_state.h"

namespace assay::emulator {
namespace {

// All blocks of a cooperative launch are alive at once.
constexpr uint64_t kCooperativeBlocksMax = 4096;
constexpr uint64_t kBlockTurn = 10'000;
// A block that is not at its end after a turn may wait for others: so many are then alive on each
// host thread, which is enough for the one of the lowest number to be among them.
constexpr size_t kResidentMax = 32;
constexpr uint64_t kResidentTurn = 200'000;
// What blocks of one launch may hold of the host's memory at a time.
constexpr uint64_t kAliveBytesMax = uint64_t{2} << 30;

// Of the host's memory, about: local memory and its bits, registers, and what is kept of shared
// memory.
uint64_t BlockBytes(const Program& program, const LaunchOptions& options) {
  const uint64_t warps = (options.block.Count() + kLanes - 1) / kLanes;
  const uint64_t local = warps * kLanes * program.local_bytes;
  const uint64_t shared = uint64_t{program.shared_bytes} + options.dynamic_shared_bytes;
  return local + local / 8 + warps * program.register_bytes + 6 * shared;
}

absl::Status CheckShape(const Program& program, std::span<const std::byte> arguments,
                        const LaunchOptions& options) {
  const Dim3& grid = options.grid;
  const Dim3& block = options.block;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 0x7fffffffu || grid.y > 65535 ||
      grid.z > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("a grid has 1 to 2147483647 x 65535 x 65535 blocks, not ", grid.x, " x ",
                     grid.y, " x ", grid.z));
  }
  if (block.x == 0 || block.y == 0 || block.z == 0 || block.x > 1024 || block.y > 1024 ||
      block.z > 64 || block.Count() > kThreadsPerBlockMax) {
    return absl::InvalidArgumentError(absl::StrCat("a block has 1 to ", kThreadsPerBlockMax,
                                                   " threads, at most 1024 x 1024 x 64, not ",
                                                   block.x, " x ", block.y, " x ", block.z));
  }
  if (block.Count() > program.max_threads) {
    return absl::InvalidArgumentError(absl::StrCat("kernel ", program.kernel,
                                                   " is compiled for at most ", program.max_threads,
                                                   " threads a block, not ", block.Count()));
  }
  const uint32_t asked[3] = {block.x, block.y, block.z};
  for (int i = 0; i < 3; ++i) {
    if (program.required_threads[i] != 0 && program.required_threads[i] != asked[i]) {
      return absl::InvalidArgumentError(
          absl::StrCat("kernel ", program.kernel, " requires another block shape"));
    }
  }
  const uint64_t shared = uint64_t{program.shared_bytes} + options.dynamic_shared_bytes;
  if (shared > kSharedBytesOptInMax) {
    return absl::InvalidArgumentError(absl::StrCat("a block has at most ", kSharedBytesOptInMax,
                                                   " bytes of shared memory, and kernel ",
                                                   program.kernel, " needs ", shared));
  }
  if (arguments.size() < program.parameter_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("kernel ", program.kernel, " takes ",
                                                   program.parameter_bytes,
                                                   " bytes of parameters, not ", arguments.size()));
  }
  if (options.cooperative && grid.Count() > kCooperativeBlocksMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a cooperative launch has at most ", kCooperativeBlocksMax, " blocks, not ", grid.Count()));
  }
  const uint64_t bytes = BlockBytes(program, options);
  if (options.cooperative && grid.Count() * bytes > kAliveBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a cooperative launch has all its blocks at once: ", grid.Count(), " of ", bytes >> 10,
        " KiB of local memory, registers and shared memory each are more than ",
        kAliveBytesMax >> 20, " MiB"));
  }
  return absl::OkStatus();
}

// The order in which blocks begin: permuted, in windows of a few, since kernels that wait for
// blocks of lower numbers work on devices, which begin blocks about in order.
class BlockOrder {
 public:
  static constexpr uint64_t kWindow = 32;

  BlockOrder(uint64_t count, uint64_t seed) : count_(count), seed_(seed) {}
  uint64_t At(uint64_t i) const {
    if (seed_ == 0) return i;
    const uint64_t first = i / kWindow * kWindow;
    const uint64_t size = std::min(kWindow, count_ - first);
    const uint64_t random = MixBits(seed_ + kGoldenGamma * (first + 1));
    uint64_t step = (random >> 32) % size;
    while (std::gcd(step, size) != 1) step = (step + 1) % size;
    return first + ((i - first) * step + random % size) % size;
  }

 private:
  const uint64_t count_;
  const uint64_t seed_;
};

class Run {
 public:
  Run(LaunchState* state, uint64_t blocks)
      : state_(*state), blocks_(blocks), order_(blocks, state->options.seed) {
    outputs_kept_ = blocks <= (1 << 20);
    if (outputs_kept_) outputs_.resize(blocks);
  }

  void Execute(int threads) {
    const int64_t start = ThreadCpuNs();
    std::vector<std::unique_ptr<Executor>> executors;
    for (int i = 0; i < threads; ++i)
      executors.push_back(std::make_unique<Executor>(state_.program.ops.size()));
    executors[0]->cpu_ns_charged = start;
    std::vector<std::thread> others;
    for (int i = 1; i < threads; ++i)
      others.emplace_back([this, &executors, i, threads] {
        RunShare(executors[static_cast<size_t>(i)].get(), i, threads);
        ChargeTime(&state_, executors[static_cast<size_t>(i)].get());
      });
    RunShare(executors[0].get(), 0, threads);
    for (std::thread& t : others) t.join();
    for (const auto& executor : executors) Collect(*executor);
    ChargeTime(&state_, executors[0].get());
  }

  LaunchResult Result() {
    LaunchResult result;
    result.faults = state_.faults.Take();
    result.stopped = state_.stop;
    result.counters = counters_;
    result.cpu_ns = state_.options.cpu_ns_max - state_.cpu_ns_left;
    for (const std::string& text : outputs_) result.output += text;
    return result;
  }

 private:
  void RunShare(Executor* executor, int share, int shares) {
    if (state_.options.cooperative) {
      RunTogether(executor, share, shares);
      return;
    }
    const size_t resident_max = ResidentBlocks(BlockBytes(state_.program, state_.options), shares);
    std::unique_ptr<Block> fresh;
    std::vector<std::unique_ptr<Block>> alive;
    while (!state_.stop) {
      const uint64_t i =
          alive.size() < resident_max ? next_.fetch_add(1, std::memory_order_relaxed) : blocks_;
      if (i >= blocks_ && alive.empty()) break;
      if (i < blocks_) {
        if (fresh == nullptr) fresh = std::make_unique<Block>(&state_, executor);
        fresh->Start(order_.At(i));
        if (fresh->Run(kResidentTurn)) {
          KeepOutput(fresh.get());
        } else {
          alive.push_back(std::move(fresh));
        }
      }
      GiveTurns(kResidentTurn, &alive);
    }
    for (const auto& block : alive) KeepOutput(block.get());
  }

  // Blocks in turns, since each may wait for all others.
  void RunTogether(Executor* executor, int share, int shares) {
    std::vector<std::unique_ptr<Block>> alive;
    for (uint64_t i = static_cast<uint64_t>(share); i < blocks_;
         i += static_cast<uint64_t>(shares)) {
      alive.push_back(std::make_unique<Block>(&state_, executor));
      alive.back()->Start(order_.At(i));
    }
    while (!alive.empty() && !state_.stop) GiveTurns(kBlockTurn, &alive);
    for (const auto& block : alive) KeepOutput(block.get());
  }

  void GiveTurns(uint64_t turn, std::vector<std::unique_ptr<Block>>* alive) {
    std::erase_if(*alive, [&](const std::unique_ptr<Block>& block) {
      if (!block->Run(turn)) return false;
      KeepOutput(block.get());
      return true;
    });
  }

  // Each block is run by one thread, so that its place needs no lock.
  void KeepOutput(Block* block) {
    if (outputs_kept_ && !block->output()->empty())
      outputs_[block->linear()] = std::move(*block->output());
  }

  void Collect(const Executor& executor) {
    for (const auto& [fault, more] : executor.more_faults)
      state_.faults.Count(fault.first, fault.second, more);
    Counters counters = executor.counters;
    executor.op_counts.Each([&](size_t op, uint64_t warps, uint64_t threads) {
      const OpInfo& info = state_.program.info[op];
      const auto flops = static_cast<uint64_t>(info.flops);
      counters.warp_instructions += warps;
      counters.thread_instructions += threads;
      switch (info.op_class) {
        case OpClass::kInteger:
          counters.integer_operations += threads;
          break;
        case OpClass::kF16:
          counters.f16_flops += threads * flops;
          break;
        case OpClass::kF32:
          counters.f32_flops += threads * flops;
          break;
        case OpClass::kF64:
          counters.f64_flops += threads * flops;
          break;
        case OpClass::kSpecial:
          counters.special_operations += threads;
          break;
        case OpClass::kTensor:
          counters.tensor_flops += warps * flops;
          break;
        default:
          break;
      }
    });
    counters_.Add(counters);
  }

  LaunchState& state_;
  const uint64_t blocks_;
  const BlockOrder order_;
  std::atomic<uint64_t> next_{0};
  bool outputs_kept_ = false;
  std::vector<std::string> outputs_;  // by block
  Counters counters_;
};

}  // namespace

size_t ResidentBlocks(uint64_t block_bytes, int shares) {
  const uint64_t fit =
      kAliveBytesMax / static_cast<uint64_t>(shares) / std::max<uint64_t>(1, block_bytes);
  return std::clamp<uint64_t>(fit, 2, kResidentMax + 1) - 1;
}

int64_t ThreadCpuNs() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

int64_t ChargeTime(LaunchState* launch, Executor* executor) {
  const int64_t now = ThreadCpuNs();
  // Clocks may be coarse; no work is free.
  const int64_t spent = std::max<int64_t>(1, now - executor->cpu_ns_charged);
  executor->cpu_ns_charged = now;
  return launch->cpu_ns_left.fetch_sub(spent, std::memory_order_relaxed) - spent;
}

std::vector<Fault> FaultLog::Take() {
  const absl::MutexLock lock(&mutex_);
  return std::move(faults_);
}

absl::StatusOr<LaunchResult> Launch(const Program& program, std::span<const std::byte> arguments,
                                    const LaunchOptions& options, DeviceMemory* memory) {
  ASSAY_RETURN_IF_ERROR(CheckShape(program, arguments, options));
  LaunchState state(program, arguments, options, memory);
  state.generation = memory->NextGeneration();
  const uint64_t blocks = options.grid.Count();
  // More blocks than race words can tell apart are not checked against each other.
  state.races_in_global = options.check_races && blocks < kManyBlocks;
  if (options.cooperative) {
    // The barrier of grid.sync(): two words that the host clears.
    ASSAY_ASSIGN_OR_RETURN(state.grid_workspace, memory->Allocate(256, "grid barrier"));
    ASSAY_ASSIGN_OR_RETURN(std::byte* const host, memory->Range(state.grid_workspace, 256));
    std::fill(host, host + 256, std::byte{0});
    ASSAY_RETURN_IF_ERROR(memory->SetInitialized(state.grid_workspace, 256, true));
  }
  const auto threads = static_cast<int>(
      std::clamp<uint64_t>(blocks, 1, static_cast<uint64_t>(std::max(1, options.threads))));
  if (threads > 1 && state.races_in_global) state.place_locks = std::make_unique<PlaceLocks>();
  Run run(&state, blocks);
  run.Execute(threads);
  if (state.grid_workspace != 0) ASSAY_RETURN_IF_ERROR(memory->Free(state.grid_workspace));
  return run.Result();
}

}  // namespace assay::emulator
