// The modifiers that ld, st, atom and red share.
#ifndef ASSAY_EMULATOR_OPS_MEMORY_DECODE_H_
#define ASSAY_EMULATOR_OPS_MEMORY_DECODE_H_

#include "absl/status/statusor.h"
#include "emulator/program/decoder.h"

namespace assay::emulator {

struct MemoryModifiers {
  Space space = Space::kGeneric;
  Type type = Type::kNone;
  int vector = 1;
  bool is_volatile = false;  // also relaxed, acquire, release, mmio
  bool orders = false;       // acquire, release, acq_rel, sc
};

// UNIMPLEMENTED for a modifier that is not known.
absl::StatusOr<MemoryModifiers> DecodeMemoryModifiers(const Instruction& instruction);

// Scopes and cache hints that change no value here. True: taken.
bool TakeScopeOrHint(Modifiers* modifiers);

// A state space with its sub-space, as in shared::cta. False: none, or one that nobody emulates
// (shared::cluster).
bool TakeSpace(Modifiers* modifiers, Space* space);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_OPS_MEMORY_DECODE_H_
