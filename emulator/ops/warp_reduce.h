// match and redux.
#ifndef ASSAY_EMULATOR_OPS_WARP_REDUCE_H_
#define ASSAY_EMULATOR_OPS_WARP_REDUCE_H_

#include "absl/status/status.h"
#include "emulator/program/decoder.h"

namespace assay::emulator {

absl::Status DecodeMatch(const Instruction& instruction, Decoder* decoder, Op* op);
absl::Status DecodeRedux(const Instruction& instruction, Decoder* decoder, Op* op);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_OPS_WARP_REDUCE_H_
