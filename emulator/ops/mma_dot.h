// The arithmetic of tensor cores, matrix by matrix; the same bits as the hardware where that is
// known.
//
// Floating point follows the model of MMA-Sim (Xie et al., arXiv 2511.10909): the products of a
// group of terms and the addend are aligned to the largest exponent among them, truncated there,
// added exactly, and rounded once; longer rows are chained groups. What no instruction of the
// hardware does is what ptxas makes of it: fp8 on Hopper is two f16 products without addend.
// Functions without state.
#ifndef ASSAY_EMULATOR_OPS_MMA_DOT_H_
#define ASSAY_EMULATOR_OPS_MMA_DOT_H_

#include <cstdint>

#include "emulator/ops/mma_tile.h"

namespace assay::emulator {

enum class BitProduct : uint8_t { kNone, kXor, kAnd };

// d = a b + c. `a` has `rows` rows and `b` `columns` of k elements, as Multiplicand keeps them.
struct MmaProblem {
  int rows = 0;
  int columns = 0;  // a multiple of 8
  int k = 0;
  Element a = Element::kNone;
  Element b = Element::kNone;
  Element c = Element::kNone;  // kF16 or kF32 for floating point
  Element d = Element::kNone;
  int arch = 80;
  bool saturate = false;                   // integers: clamp to the range of s32
  BitProduct product = BitProduct::kNone;  // of b1
};

// `values` holds c and then d, rows x columns, 16-bit ones in the low half.
void MultiplyFloat(const MmaProblem& problem, const uint32_t* a, const uint32_t* b,
                   uint32_t* values);
void MultiplyInteger(const MmaProblem& problem, const uint32_t* a, const uint32_t* b,
                     uint32_t* values);
// A chain of fused multiply-adds in the order of k.
void MultiplyDouble(const MmaProblem& problem, const uint64_t* a, const uint64_t* b,
                    uint64_t* values);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_OPS_MMA_DOT_H_
