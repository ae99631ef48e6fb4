#include "emulator/execute/access_pattern.h"

#include <algorithm>
#include <bit>

namespace assay::emulator {

void FindDistinct(uint32_t mask, uint32_t bytes, const WarpAccess& access, LanePattern* pattern) {
  // A place is found again by a small hash of it; where two share one, a lane may count as distinct
  // that is not.
  uint64_t place[64];
  int lane_of[64];
  uint64_t used = 0;
  pattern->first = pattern->repeated = 0;
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const uint64_t offset = access.offset[lane];
    const uint64_t slot = (offset / bytes ^ offset >> 8) & 63;
    const uint64_t bit = uint64_t{1} << slot;
    if ((used & bit) != 0 && place[slot] == offset) {
      pattern->repeated |= 1u << lane_of[slot];
      continue;
    }
    place[slot] = offset;
    lane_of[slot] = lane;
    used |= bit;
    pattern->first |= 1u << lane;
  }
}

uint64_t CountSectors(uint32_t mask, uint32_t bytes, const WarpAccess& access) {
  const uint64_t first = access.offset[std::countr_zero(mask)];
  if (access.pattern == Pattern::kBroadcast) return 1;
  if (access.pattern == Pattern::kConsecutive) {
    return (first + uint64_t{bytes} * kLanes - 1) / 32 - first / 32 + 1;
  }
  // The lanes outside of the mask repeat one of it.
  uint64_t sectors[kLanes];
  uint64_t least = ~uint64_t{0};
  uint64_t most = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    sectors[lane] = access.offset[lane] / 32;
    least = std::min(least, sectors[lane]);
    most = std::max(most, sectors[lane]);
  }
  if (most - least < 64) {
    uint64_t seen = 0;
    for (const uint64_t sector : sectors) seen |= uint64_t{1} << (sector - least);
    return static_cast<uint64_t>(std::popcount(seen));
  }
  std::sort(sectors, sectors + kLanes);
  return static_cast<uint64_t>(std::unique(sectors, sectors + kLanes) - sectors);
}

uint64_t CountBankConflicts(uint32_t distinct, uint32_t bytes, const WarpAccess& access) {
  const int lanes_a_pass = bytes <= 4 ? 32 : bytes == 8 ? 16 : 8;
  uint64_t conflicts = 0;
  for (int from = 0; from < kLanes; from += lanes_a_pass) {
    alignas(32) uint8_t count[32] = {};
    uint32_t words[32][4];  // the first few of each bank, to see repeats that the distinct lanes
                            // still have
    int most = 0;
    const uint32_t part =
        lanes_a_pass == 32 ? distinct : distinct & (((1u << lanes_a_pass) - 1) << from);
    for (uint32_t rest = part; rest != 0; rest &= rest - 1) {
      const uint64_t offset = access.offset[std::countr_zero(rest)];
      for (uint32_t done = 0; done < std::max(4u, bytes); done += 4) {
        const auto word = static_cast<uint32_t>((offset + done) / 4);
        const uint32_t bank = word % 32;
        bool seen = false;
        for (int i = 0; i < std::min<int>(4, count[bank]) && !seen; ++i)
          seen = words[bank][i] == word;
        if (seen) continue;
        if (count[bank] < 4) words[bank][count[bank]] = word;
        most = std::max<int>(most, ++count[bank]);
      }
    }
    conflicts += static_cast<uint64_t>(std::max(0, most - 1));
  }
  return conflicts;
}

}  // namespace assay::emulator
