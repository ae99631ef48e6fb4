// How the lanes of an operation lay to each other when it last touched memory, and what follows
// from that: mostly they lie the same way the next time. A plain value; one executor's.
#ifndef ASSAY_EMULATOR_EXECUTE_LANE_PATTERN_H_
#define ASSAY_EMULATOR_EXECUTE_LANE_PATTERN_H_

#include <cstdint>

#include "emulator/program/program.h"

namespace assay::emulator {

enum class Pattern : uint8_t { kBroadcast, kConsecutive, kScattered };

struct LanePattern {
  // Bytes in a row that are touched, from the lowest address on.
  struct Run {
    uint32_t from = 0;
    uint32_t bytes = 0;
  };
  static constexpr uint32_t kWordsMax = kLanes * 8;
  static constexpr uint8_t kSeveral = kLanes;  // beside the lane in `owner`

  uint32_t mask = 0;   // 0: nothing yet
  uint32_t bytes = 0;  // of a value
  bool shared = false;
  Pattern kind = Pattern::kScattered;
  uint32_t lead = 0;       // the lane of the lowest address
  uint32_t span = 0;       // bytes from there to the end of the highest
  uint32_t first = 0;      // of the lanes that touch the same place, one each
  uint32_t repeated = 0;   // of those, the ones that are not alone
  uint32_t conflicts = 0;  // of banks
  uint32_t changes = 0;    // since it was last met again
  uint32_t unmet = 0;      // accesses that were not looked at since
  uint32_t run_count = 0;
  alignas(32) uint32_t relative[kLanes] = {};  // addresses, from the lowest on; others have 0
  Run runs[kLanes];
  // For every 4 bytes of the runs, one after the other: a lane that touches them, and kSeveral.
  // Not of values that are smaller.
  uint8_t owner[kWordsMax] = {};
  // Sectors by the lowest address in its own; 0: not counted yet.
  uint8_t sectors[32] = {};
  // An access from this address on was certainly in order, and left nothing to record, as of this
  // version of shared memory.
  uint64_t settled_at = 0;
  uint64_t settled_version = 0;
};

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_EXECUTE_LANE_PATTERN_H_
