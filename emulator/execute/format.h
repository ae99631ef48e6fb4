// printf as kernels call it: a format and a buffer of packed arguments.
//
// Pure; thread-safe when the functions given are.
#ifndef ASSAY_EMULATOR_EXECUTE_FORMAT_H_
#define ASSAY_EMULATOR_EXECUTE_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace assay::emulator {

// The longest text that one call writes. What is longer ends in kFormatCut.
inline constexpr size_t kFormatBytesMax = 64 << 10;
inline constexpr std::string_view kFormatCut = "[cut]";
// Larger widths and precisions are taken as this.
inline constexpr int kFormatWidthMax = 4096;

// Arguments lie in the buffer one after another as C's default promotions leave them: 4-byte
// integers at multiples of 4, 8-byte ones, doubles and pointers at multiples of 8.
// read_argument(offset, out, bytes) copies one out and is false when the buffer does not hold it;
// read_string(address) follows the pointer of a %s.
//
// Understands C's flags, width and precision (also *), the lengths hh h l ll z j t L, and d i u o x
// X c s p e E f F g G a A and %. Anything else is copied as it stands, %n with its argument passed
// over; so is a conversion whose argument is missing, and all after it. A string that cannot be
// read is replaced by the reason in angle brackets.
std::string FormatPrintf(
    std::string_view format,
    const std::function<bool(uint64_t offset, void* out, size_t bytes)>& read_argument,
    const std::function<absl::StatusOr<std::string>(uint64_t address)>& read_string);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_EXECUTE_FORMAT_H_
