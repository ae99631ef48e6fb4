#include "emulator/ops/mma_parts.h"

#include <algorithm>

namespace assay::emulator {
namespace {

// Where element `k` of a row goes: on Hopper an fp8 row is taken as two, the first and second
// halves of its registers.
inline int Position(int k, int length, bool halves) {
  return halves ? (k & 2) / 2 * (length / 2) + k / 4 * 2 + k % 2 : k;
}

// Element k of row r lands at r * row_stride + k * k_stride.
template <int kBits>
void Unpack(const uint32_t* words, int rows, int length, bool halves, int row_stride, int k_stride,
            uint32_t* elements) {
  constexpr int kPerWord = 32 / kBits;
  for (int row = 0; row < rows; ++row) {
    for (int k = 0; k < length; k += kPerWord) {
      const uint32_t word = *words++;
      for (int i = 0; i < kPerWord; ++i) {
        const int at = row * row_stride + Position(k + i, length, halves) * k_stride;
        elements[at] = word >> (i * kBits) & static_cast<uint32_t>((uint64_t{1} << kBits) - 1);
      }
    }
  }
}

// One element after another, for what TakeApartFinite does not know.
void TakeApartSlowly(int count, const Format& format, Parts* parts) {
  for (int i = 0; i < count; ++i) {
    const Part part = TakeApart(parts->bits[i], format);
    parts->significand[i] = part.significand;
    parts->exponent[i] = part.exponent;
    parts->special[i] = part.special;
    parts->has_special |= part.special != kFinite;
  }
}

// False when there are infinities or NaNs.
bool TakeApartFinite(int count, const Format& format, Parts* parts) {
  const int32_t fraction_mask = (1 << format.fraction_bits) - 1;
  const int32_t exponent_mask = (1 << format.exponent_bits) - 1;
  const int sign_shift = format.fraction_bits + format.exponent_bits;
  const int32_t last =
      format.infinities ? exponent_mask << format.fraction_bits : (1 << sign_shift) - 1;
  const Columns none = {};
  Columns special = {};
  for (int i = 0; i < count; i += kColumns) {
    Columns bits;
    LoadColumns(parts->bits + i, &bits);
    const Columns fraction = bits & fraction_mask;
    const Columns field = bits >> format.fraction_bits & exponent_mask;
    const Columns significand = field != 0 ? fraction | (fraction_mask + 1) : fraction;
    const Columns exponent = (field != 0 ? field : none + 1) - format.bias;
    const Columns sign = -(bits >> sign_shift & 1);
    StoreColumns((significand ^ sign) - sign, parts->significand + i);
    StoreColumns(significand != 0 ? exponent : none + kZeroExponent, parts->exponent + i);
    special |= (bits & ((1 << sign_shift) - 1)) >= last;
  }
  return !AnyColumn(special);
}

}  // namespace

Format FormatOf(Element element, bool as_f16) {
  switch (element) {
    case Element::kBF16:
      return {8, 7, 127, true, false};
    case Element::kTF32:
      return {8, 10, 127, true, false};
    case Element::kE5M2:
      return {5, 2, 15, true, false};
    case Element::kE4M3:
      return {4, 3, 7, false, as_f16};
    default:
      return {5, 10, 15, true, false};
  }
}

Part TakeApart(uint32_t bits, const Format& format) {
  const uint32_t fraction = bits & ((1u << format.fraction_bits) - 1);
  const uint32_t exponent_mask = (1u << format.exponent_bits) - 1;
  const uint32_t field = bits >> format.fraction_bits & exponent_mask;
  const bool negative = (bits >> (format.fraction_bits + format.exponent_bits) & 1u) != 0;
  Part part;
  if (field == exponent_mask) {
    if (format.infinities) {
      part.special = fraction != 0 ? kNan : negative ? kMinusInfinity : kInfinity;
      return part;
    }
    if (fraction == (1u << format.fraction_bits) - 1) {
      part.special = kNan;
      return part;
    }
  }
  const uint32_t hidden = 1u << format.fraction_bits;
  uint32_t significand = fraction | (field != 0 ? hidden : 0);
  if (significand == 0) return part;
  part.exponent = static_cast<int32_t>(std::max(field, 1u)) - format.bias;
  while (format.normalize && significand < hidden) {
    significand <<= 1;
    --part.exponent;
  }
  part.significand =
      negative ? -static_cast<int32_t>(significand) : static_cast<int32_t>(significand);
  return part;
}

void TakeApart(const uint32_t* words, int rows, int length, Element element, bool halves,
               int row_stride, int k_stride, Parts* parts) {
  switch (ElementBits(element)) {
    case 8:
      Unpack<8>(words, rows, length, halves, row_stride, k_stride, parts->bits);
      break;
    case 16:
      Unpack<16>(words, rows, length, false, row_stride, k_stride, parts->bits);
      break;
    default:
      Unpack<32>(words, rows, length, false, row_stride, k_stride, parts->bits);
      break;
  }
  const int count = rows * length;
  if (element == Element::kTF32) {
    // The low bits of a register are cut off.
    for (int i = 0; i < count; ++i) parts->bits[i] >>= 13;
  }
  const Format format = FormatOf(element, halves);
  parts->fraction_bits = format.fraction_bits;
  parts->has_special = false;
  if (format.normalize || !TakeApartFinite(count, format, parts)) {
    TakeApartSlowly(count, format, parts);
  }
}

}  // namespace assay::emulator
