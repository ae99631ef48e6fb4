#include "emulator/ops/warp_barrier.h"

#include "base/status.h"
#include "emulator/execute/warp.h"
#include "emulator/ops/warp_party.h"

namespace assay::emulator {
namespace {

void Synchronize(Warp* warp, const Op& op, uint32_t mask) {
  EachParty(warp, mask, op.a,
            [&](uint32_t party, uint32_t members) { WarpBarrier(warp, op, party, members); });
}

}  // namespace

absl::Status DecodeWarpBarrier(const Instruction& instruction, Decoder* decoder, Op* op) {
  ASSAY_RETURN_IF_ERROR(CheckOperandCount(instruction, 1, 1));
  ASSAY_ASSIGN_OR_RETURN(op->a, decoder->Source(instruction.operands[0], Type::kU32));
  op->handler = Synchronize;
  return absl::OkStatus();
}

}  // namespace assay::emulator
