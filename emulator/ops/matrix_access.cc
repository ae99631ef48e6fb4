#include "emulator/ops/matrix_access.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "emulator/execute/memory_access.h"
#include "emulator/execute/warp.h"

namespace assay::emulator {
namespace {

// Every check for all lanes at once; false when one fails, or when the lanes are in different
// spaces.
bool Prepare(Warp* warp, const Op& op, uint32_t mask, const uint64_t* addresses, uint32_t bytes,
             AccessKind kind, WarpAccess* access) {
  Space space = MatrixSpace(op);
  alignas(64) uint64_t split[kLanes];
  std::copy_n(addresses, kLanes, split);
  if (space == Space::kGeneric) {
    space = SplitGeneric(&split[std::countr_zero(mask)]);
    for (uint32_t rest = mask & (mask - 1); rest != 0; rest &= rest - 1) {
      if (SplitGeneric(&split[std::countr_zero(rest)]) != space) return false;
    }
  }
  switch (space) {
    case Space::kGlobal:
    case Space::kConst:
      return PrepareGlobal(warp, op, mask, split, bytes, kind, access);
    case Space::kShared:
      return PrepareShared(warp, op, mask, split, bytes, kind, access);
    default:
      return false;
  }
}

}  // namespace

bool LoadMatrixLanes(Warp* warp, const Op& op, uint32_t mask, const uint64_t* addresses,
                     uint32_t bytes, std::byte* values) {
  WarpAccess access;
  const bool fast = Prepare(warp, op, mask, addresses, bytes, AccessKind::kLoad, &access);
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    std::byte* const to = values + static_cast<size_t>(lane) * bytes;
    if (fast) {
      std::memcpy(to, access.at(lane), bytes);
    } else if (!LoadLane(warp, op, lane, MatrixSpace(op), addresses[lane], bytes, to)) {
      return false;
    }
  }
  return true;
}

bool StoreMatrixLanes(Warp* warp, const Op& op, uint32_t mask, const uint64_t* addresses,
                      uint32_t bytes, const std::byte* values) {
  WarpAccess access;
  access.values = values;
  const bool fast = Prepare(warp, op, mask, addresses, bytes, AccessKind::kStore, &access);
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::byte* const from = values + static_cast<size_t>(lane) * bytes;
    if (fast) {
      std::memcpy(access.at(lane), from, bytes);
    } else if (!StoreLane(warp, op, lane, MatrixSpace(op), addresses[lane], bytes, from)) {
      return false;
    }
  }
  return true;
}

}  // namespace assay::emulator
