// Constants and constant expressions of PTX (chapter 4.5 of the PTX ISA).
#ifndef ASSAY_EMULATOR_PTX_CONSTANT_H_
#define ASSAY_EMULATOR_PTX_CONSTANT_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "emulator/ptx/reader.h"

namespace assay::emulator {

// The value of WARP_SZ.
inline constexpr uint64_t kWarpSize = 32;

struct Constant {
  bool is_float = false;
  bool single = false;       // of a float: bits are those of a float
  bool is_unsigned = false;  // of an integer
  uint64_t bits = 0;

  double AsDouble() const;  // of either kind
};

// Reads the longest constant expression at the present token: C's operators on 64-bit integers, on
// floats
// + - * /, casts (.s64) and (.u64), WARP_SZ. Integers wrap.
absl::Status ParseConstant(Reader* reader, Constant* constant);
// The same, for an integer of `least` to `most`.
absl::Status ParseIntegerConstant(Reader* reader, std::string_view what, int64_t least,
                                  int64_t most, int64_t* value);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_PTX_CONSTANT_H_
