// mbarrier objects: 64 bits in shared memory with a phase, the arrivals that it still waits for,
// and bytes.
#ifndef ASSAY_EMULATOR_OPS_MBARRIER_H_
#define ASSAY_EMULATOR_OPS_MBARRIER_H_

#include "emulator/program/decoder.h"

namespace assay::emulator {

// The address operand of an mbarrier operation: Op::a, Op::b (displacement, a constant of 8 bytes),
// Op::extra.
absl::Status DecodeMbarrierAddress(const Operand& operand, Decoder* decoder, Op* op);

// The arrival of cp.async.mbarrier.arrive, whose copies have landed. With Op::data 0 the pending
// count was raised before.
void MbarrierArriveAfterCopy(Warp* warp, const Op& op, uint32_t mask);

void AddMbarrierOps(OpTable* table);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_OPS_MBARRIER_H_
