#include "emulator/execute/async_copy.h"

#include <cstring>

#include "emulator/execute/memory_access.h"
#include "emulator/execute/warp.h"
#include "emulator/memory/bits.h"

namespace assay::emulator {
namespace {

void Land(WarpState* warp, const std::vector<AsyncCopy>& copies) {
  Block& block = *warp->block;
  for (const AsyncCopy& copy : copies) {
    const uint64_t offset = copy.destination - kSharedBase;
    ClearBits(block.shared_pending(), offset, copy.bytes);
    if (!StoreLane(warp, block.program().ops[copy.pc], copy.lane, Space::kShared, copy.destination,
                   copy.bytes, copy.data)) {
      return;
    }
  }
}

}  // namespace

void CompleteAsyncGroups(WarpState* warp, size_t pending) {
  while (warp->async_groups.size() > pending) {
    const std::vector<AsyncCopy> copies = std::move(warp->async_groups.front());
    warp->async_groups.pop_front();
    Land(warp, copies);
  }
}

void CompleteAsyncCopies(WarpState* warp) {
  if (warp->async_groups.empty() && warp->async_open.empty()) return;
  CompleteAsyncGroups(warp, 0);
  Land(warp, std::exchange(warp->async_open, {}));
}

}  // namespace assay::emulator
