#include "emulator/execute/access_pattern.h"

#include <algorithm>
#include <bit>

namespace assay::emulator {

namespace {

// Lanes by address; those of one place in the order of their numbers.
uint32_t SortByAddress(uint32_t mask, uint64_t least, const WarpAccess& access, uint64_t* keys) {
  uint32_t count = 0;
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    const uint64_t key = (access.offset[lane] - least) << 5 | lane;
    uint32_t at = count++;
    for (; at > 0 && keys[at - 1] > key; --at) keys[at] = keys[at - 1];
    keys[at] = key;
  }
  return count;
}

}  // namespace

bool IsPattern(const LanePattern& pattern, uint32_t mask, const WarpAccess& access) {
  if (pattern.mask != mask) return false;
  const uint64_t start = access.offset[pattern.lead];
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    if (access.offset[lane] - start != pattern.relative[lane]) return false;
  }
  return true;
}

void LearnPattern(uint32_t mask, uint32_t bytes, bool shared, const WarpAccess& access,
                  LanePattern* pattern) {
  const uint32_t changes = pattern->changes + 1;
  const uint32_t unmet = pattern->unmet;
  *pattern = LanePattern();
  pattern->changes = changes;
  pattern->unmet = unmet;
  uint64_t least = ~uint64_t{0};
  uint64_t most = 0;
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    least = std::min(least, access.offset[std::countr_zero(rest)]);
    most = std::max(most, access.offset[std::countr_zero(rest)]);
  }
  if (most - least >= (uint64_t{1} << 31)) return;
  uint64_t keys[kLanes];
  const uint32_t count = SortByAddress(mask, least, access, keys);
  const uint32_t words = bytes / 4;
  uint8_t* owner = pattern->owner;  // of the place
  uint32_t end = 0;                 // of the place
  for (uint32_t i = 0; i < count; ++i) {
    const auto lane = static_cast<uint8_t>(keys[i] & 31);
    const auto from = static_cast<uint32_t>(keys[i] >> 5);
    pattern->relative[lane] = from;
    if (i > 0 && from == static_cast<uint32_t>(keys[i - 1] >> 5)) {
      for (uint32_t w = 0; w < words; ++w) (owner - words)[w] |= LanePattern::kSeveral;
      continue;
    }
    pattern->first |= 1u << lane;
    if (i + 1 < count && from == static_cast<uint32_t>(keys[i + 1] >> 5))
      pattern->repeated |= 1u << lane;
    if (i == 0 || from != end) pattern->runs[pattern->run_count++].from = from;
    pattern->runs[pattern->run_count - 1].bytes += bytes;
    end = from + bytes;
    for (uint32_t w = 0; w < words; ++w) *owner++ = lane;
  }
  pattern->mask = mask;
  pattern->bytes = bytes;
  pattern->shared = shared;
  pattern->kind = access.pattern;
  pattern->lead = static_cast<uint32_t>(keys[0] & 31);
  pattern->span = end;
  if (shared && pattern->kind == Pattern::kScattered)
    pattern->conflicts = static_cast<uint32_t>(CountBankConflicts(pattern->first, bytes, access));
}

uint64_t CountSectors(LanePattern* pattern, uint64_t start) {
  uint8_t& known = pattern->sectors[start % 32];
  if (known != 0) return known;
  uint32_t sectors = 0;
  uint64_t next = 0;  // after the last one counted
  for (uint32_t i = 0; i < pattern->run_count; ++i) {
    const LanePattern::Run& run = pattern->runs[i];
    const uint64_t first = (start % 32 + run.from) / 32;
    const uint64_t last = (start % 32 + run.from + run.bytes - 1) / 32;
    sectors += static_cast<uint32_t>(last + 1 - std::max(first, next));
    next = last + 1;
  }
  known = static_cast<uint8_t>(sectors);
  return sectors;
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
