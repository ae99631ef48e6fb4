// Lanes that execute a .sync operation together: those that bring the same member mask.
#ifndef ASSAY_EMULATOR_OPS_WARP_PARTY_H_
#define ASSAY_EMULATOR_OPS_WARP_PARTY_H_

#include <bit>
#include <cstdint>

#include "emulator/execute/lanes.h"
#include "emulator/execute/warp.h"

namespace assay::emulator {

// The lanes of `mask` whose value is that of its first lane.
template <typename T>
inline uint32_t LanesLikeFirst(uint32_t mask, const T* values) {
  const T first = values[std::countr_zero(mask)];
  uint32_t like = 0;
  for (int lane = 0; lane < kLanes; ++lane) like |= uint32_t{values[lane] == first} << lane;
  return like & mask;
}

// Calls meet(party, members) for each set of lanes of `mask` with the same value in the register
// `members`. `meet` calls Converge or WarpBarrier for the party; parties that must wait are parked
// and the others go on.
template <typename Meet>
void EachParty(Warp* warp, uint32_t mask, uint32_t members, Meet&& meet) {
  const uint32_t* const masks = Lanes<uint32_t>(warp, members);
  uint32_t party = LanesLikeFirst(mask, masks);
  if (party == mask) return meet(mask, masks[std::countr_zero(mask)]);
  const uint32_t active = warp->active;
  uint32_t parked = 0;
  for (uint32_t rest = mask; rest != 0; rest &= ~party) {
    party = LanesLikeFirst(rest, masks);
    // Converge sends on what is active beside the party; that is done here, when all have met.
    warp->active = party;
    meet(party, masks[std::countr_zero(party)]);
    if (warp->active == 0) parked |= party;
    if (warp->event == WarpEvent::kStopped) break;
  }
  warp->active = active & ~parked;
}

// EachParty with the meeting done: calls run(party, members) for those that are complete. Without a
// member mask (kNoRegister) the lanes of `mask` are the party.
template <typename Run>
void EachConvergedParty(Warp* warp, const Op& op, uint32_t mask, uint32_t members, Run&& run) {
  if (members == kNoRegister) return run(mask, mask);
  EachParty(warp, mask, members, [&](uint32_t party, uint32_t named) {
    if (Converge(warp, op, party, named)) run(party, named);
  });
}

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_OPS_WARP_PARTY_H_
