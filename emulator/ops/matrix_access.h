// Accesses of ldmatrix, stmatrix and wmma: every lane of a mask at an address of its own.
#ifndef ASSAY_EMULATOR_OPS_MATRIX_ACCESS_H_
#define ASSAY_EMULATOR_OPS_MATRIX_ACCESS_H_

#include <cstddef>
#include <cstdint>

#include "emulator/execute/lanes.h"
#include "emulator/ptx/module.h"

namespace assay::emulator {

// Op::extra of the matrix operations beyond kNarrowAddress: the space.
inline constexpr uint32_t kMatrixSpaceShift = 4;  // four bits
inline Space MatrixSpace(const Op& op) {
  return static_cast<Space>(op.extra >> kMatrixSpaceShift & 15);
}

// Lane i's `bytes` (1 to 16) go to or come from values + i * bytes. False: the handler returns, as
// a fault was reported.
bool LoadMatrixLanes(Warp* warp, const Op& op, uint32_t mask, const uint64_t* addresses,
                     uint32_t bytes, std::byte* values);
bool StoreMatrixLanes(Warp* warp, const Op& op, uint32_t mask, const uint64_t* addresses,
                      uint32_t bytes, const std::byte* values);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_OPS_MATRIX_ACCESS_H_
