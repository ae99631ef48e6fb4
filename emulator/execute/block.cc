#include "emulator/execute/block.h"

#include <algorithm>
#include <cstring>

#include "emulator/execute/async_copy.h"

namespace assay::emulator {
namespace {

uint64_t Mix(uint64_t z) {  // splitmix64's finaliser
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

void FillConstants(const Program& program, std::byte* registers) {
  for (const ConstantSlot& slot : program.constants) {
    if (slot.bytes == 1) {
      const uint32_t mask = slot.bits != 0 ? kAllLanes : 0;
      std::memcpy(registers + slot.offset, &mask, sizeof(mask));
      continue;
    }
    for (int lane = 0; lane < kLanes; ++lane) {
      std::memcpy(registers + slot.offset + lane * slot.bytes, &slot.bits, slot.bytes);
    }
  }
}

uint32_t RoundUp(uint32_t value, uint32_t to) { return (value + to - 1) / to * to; }

}  // namespace

Block::Block(LaunchState* launch, Executor* executor)
    : launch_(*launch), executor_(*executor), shared_sync_(&launch->sync_budget) {
  const Dim3& dim = launch_.options.block;
  thread_count_ = dim.x * dim.y * dim.z;
  const uint32_t warps = (thread_count_ + kLanes - 1) / kLanes;
  shared_bytes_ = RoundUp(program().shared_bytes, program().dynamic_shared_align) +
                  launch_.options.dynamic_shared_bytes;
  if (launch_.options.dynamic_shared_bytes == 0) shared_bytes_ = program().shared_bytes;
  // Padded, so that a whole word or vector can be looked at at the end.
  shared_.resize(shared_bytes_ / 8 + 8);
  shared_initialized_.resize(shared_bytes_ / 64 + 2);
  shared_pending_.resize(shared_bytes_ / 64 + 2);
  shared_race_.resize(2 * (size_t{shared_bytes_} / 4 + 4));
  local_stride_ = RoundUp(program().local_bytes, 64);
  local_.resize(local_stride_ * warps * kLanes);
  local_initialized_.resize(local_.size() / 64 + 1);
  for (uint32_t i = 0; i < warps; ++i) {
    warps_.push_back(std::make_unique<WarpState>());
    InitWarp(warps_.back().get(), i);
  }
}

void Block::InitWarp(WarpState* warp, uint32_t index) {
  warp->index = index;
  warp->block = this;
  warp->register_file.resize(program().register_bytes + 64);
  const auto start = reinterpret_cast<uintptr_t>(warp->register_file.data());
  warp->registers = warp->register_file.data() + (64 - start % 64) % 64;
  warp->ops = program().ops.data();
  warp->lists = program().lists.data();
  FillConstants(program(), warp->registers);
}

uint64_t* Block::shared_byte_race(bool wanted) {
  if (!shared_byte_race_.empty()) return shared_byte_race_.data();
  if (!wanted) return nullptr;
  shared_byte_race_.resize(4 * shared_race_.size());
  return shared_byte_race_.data();
}

Dim3 Block::ThreadIndex(uint32_t thread) const {
  const Dim3& dim = launch_.options.block;
  return {thread % dim.x, thread / dim.x % dim.y, thread / dim.x / dim.y};
}

uint64_t Block::Random() { return Mix(random_ += 0x9e3779b97f4a7c15u); }

void Block::Start(uint64_t linear) {
  linear_ = linear;
  const Dim3& grid = launch_.options.grid;
  index_ = {static_cast<uint32_t>(linear % grid.x), static_cast<uint32_t>(linear / grid.x % grid.y),
            static_cast<uint32_t>(linear / grid.x / grid.y)};
  random_ = Mix(launch_.options.seed ^ Mix(linear + 1));
  next_warp_ = 0;
  epoch_ = 1;
  partial_sync_ = false;
  std::fill(shared_initialized_.begin(), shared_initialized_.end(), 0);
  std::fill(shared_pending_.begin(), shared_pending_.end(), 0);
  std::fill(shared_race_.begin(), shared_race_.end(), 0);
  std::memset(shared_.data(), 0xff, shared_.size() * sizeof(shared_[0]));
  std::fill(local_initialized_.begin(), local_initialized_.end(), 0);
  for (BarrierState& barrier : barriers_) barrier = {};
  if (!shared_sync_.empty()) shared_sync_.Clear();
  mbarrier_known_.clear();
  output_.clear();
  for (const auto& warp : warps_) StartWarp(warp.get());
}

void Block::StartWarp(WarpState* warp) {
  const uint32_t first = warp->index * kLanes;
  const uint32_t lanes = std::min<uint32_t>(kLanes, thread_count_ - first);
  warp->pc = program().entry;
  warp->live = warp->active = lanes == kLanes ? kAllLanes : (1u << lanes) - 1;
  warp->event = WarpEvent::kNone;
  warp->groups.clear();
  warp->at_barrier = 0;
  warp->forced = false;
  warp->fenced = false;
  warp->known.assign(warps_.size(), 0);
  warp->known[warp->index] = 1;
  warp->async_groups.clear();
  warp->async_open.clear();
  warp->executed = 0;
  warp->choices = 0;
  for (RaceView* view : {&warp->shared_view, &warp->global_view}) {
    *view = {};
    view->warp = warp->index;
  }
  warp->global_view.block = static_cast<uint32_t>(std::min<uint64_t>(linear_, kManyBlocks));
  warp->global_view.generation = launch_.generation;
  RefreshViews(warp);
  FillSpecials(warp);
}

void Block::FillSpecials(WarpState* warp) {
  const LaunchOptions& options = launch_.options;
  const auto value = [&](SpecialRegister which, uint32_t lane) -> uint32_t {
    const Dim3 thread = ThreadIndex(warp->index * kLanes + lane);
    switch (which) {
      case SpecialRegister::kTidX:
        return thread.x;
      case SpecialRegister::kTidY:
        return thread.y;
      case SpecialRegister::kTidZ:
        return thread.z;
      case SpecialRegister::kNtidX:
        return options.block.x;
      case SpecialRegister::kNtidY:
        return options.block.y;
      case SpecialRegister::kNtidZ:
        return options.block.z;
      case SpecialRegister::kCtaidX:
        return index_.x;
      case SpecialRegister::kCtaidY:
        return index_.y;
      case SpecialRegister::kCtaidZ:
        return index_.z;
      case SpecialRegister::kNctaidX:
        return options.grid.x;
      case SpecialRegister::kNctaidY:
        return options.grid.y;
      case SpecialRegister::kNctaidZ:
        return options.grid.z;
      case SpecialRegister::kLaneid:
        return lane;
      case SpecialRegister::kWarpid:
        return warp->index;
      case SpecialRegister::kNwarpid:
        return warp_count();
      case SpecialRegister::kSmid:
        return static_cast<uint32_t>(linear_ % kMultiprocessors);
      case SpecialRegister::kNsmid:
        return kMultiprocessors;
      case SpecialRegister::kGridid:
        return launch_.generation;
      case SpecialRegister::kLanemaskEq:
        return 1u << lane;
      case SpecialRegister::kLanemaskLe:
        return lane == 31 ? kAllLanes : (2u << lane) - 1;
      case SpecialRegister::kLanemaskLt:
        return (1u << lane) - 1;
      case SpecialRegister::kLanemaskGe:
        return ~((1u << lane) - 1);
      case SpecialRegister::kLanemaskGt:
        return lane == 31 ? 0 : ~((2u << lane) - 1);
      case SpecialRegister::kDynamicSmemSize:
        return options.dynamic_shared_bytes;
      case SpecialRegister::kTotalSmemSize:
        return shared_bytes_;
      case SpecialRegister::kEnvreg1:
        return static_cast<uint32_t>(launch_.grid_workspace >> 32);
      case SpecialRegister::kEnvreg2:
        return static_cast<uint32_t>(launch_.grid_workspace);
      case SpecialRegister::kZero:
        return 0;
    }
    return 0;
  };
  for (const SpecialSlot& slot : program().specials) {
    for (uint32_t lane = 0; lane < kLanes; ++lane)
      Lanes<uint32_t>(warp, slot.offset)[lane] = value(slot.which, lane);
  }
}

void Block::Finish() {
  for (const auto& warp : warps_) CompleteAsyncCopies(warp.get());
}

}  // namespace assay::emulator
