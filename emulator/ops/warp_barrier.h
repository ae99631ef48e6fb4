// bar.warp.sync, which shares its mnemonic with the barriers of a block.
#ifndef ASSAY_EMULATOR_OPS_WARP_BARRIER_H_
#define ASSAY_EMULATOR_OPS_WARP_BARRIER_H_

#include "emulator/program/decoder.h"

namespace assay::emulator {

absl::Status DecodeWarpBarrier(const Instruction& instruction, Decoder* decoder, Op* op);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_OPS_WARP_BARRIER_H_
