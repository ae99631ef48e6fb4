// wmma.load and wmma.store.
#ifndef ASSAY_EMULATOR_OPS_MATRIX_WMMA_H_
#define ASSAY_EMULATOR_OPS_MATRIX_WMMA_H_

#include "absl/status/status.h"
#include "emulator/program/decoder.h"

namespace assay::emulator {

absl::Status DecodeWmmaTransfer(const Instruction& instruction, Decoder* decoder, Op* op);

// An address operand into op->a, op->data and kNarrowAddress of op->extra.
absl::Status DecodeMatrixAddress(const Operand& operand, Decoder* decoder, Op* op);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_OPS_MATRIX_WMMA_H_
