// The part that all generated candidates share, and what each kind does. This is text: it is
// compiled by the worker's builder, never here.
#include "client/audit/generate.h"

namespace assay {

// Follows the enclosed sources, so that its names reach none of them.
const char kPreludeIncludes[] = R"(#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <vector>
)";

const char kPrelude[] = R"(
template <class... T> static int64_t min(T... v) { return std::min({int64_t(v)...}); }
template <class... T> static int64_t max(T... v) { return std::max({int64_t(v)...}); }
static int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }

namespace audit {
enum Type { F32 = 1, F64, I8, U8, I32, F16, BF16 };
enum Draw { NONE, NORMAL, UNIFORM, INTEGERS, CODES };
struct Tensor {
  void* data;
  int type;
  bool output;
  int64_t n;    // elements
  int64_t row;  // of them along the last dimension
  bool scaled;  // tolerance
  double l2, element;
  bool per_row;
  double honest;  // largest error of honest candidates, as `element`
  int draw;
  double low, high;
};
using Tensors = std::vector<Tensor>;

inline int64_t Size(int type) {
  return type == F64 ? 8 : type == I8 || type == U8 ? 1 : type == F16 || type == BF16 ? 2 : 4;
}
inline bool Floating(int type) { return type != I8 && type != U8 && type != I32; }

// f16: 10 and 5 bits; bf16: 7 and 8.
inline double FromSmall(uint16_t bits, int mantissa, int exponent) {
  const int bias = (1 << (exponent - 1)) - 1, top = (1 << exponent) - 1;
  const int e = (bits >> mantissa) & top, m = bits & ((1 << mantissa) - 1);
  double v = e == top ? (m ? NAN : INFINITY)
             : e == 0 ? std::ldexp(double(m), 1 - bias - mantissa)
                      : std::ldexp(double(m + (1 << mantissa)), e - bias - mantissa);
  return bits >> 15 ? -v : v;
}
inline uint16_t ToSmall(double v, int mantissa, int exponent) {
  const int bias = (1 << (exponent - 1)) - 1, top = (1 << exponent) - 1;
  const uint16_t sign = std::signbit(v) ? 0x8000 : 0;
  const double size = std::fabs(v);
  if (std::isnan(v)) return uint16_t(sign | (top << mantissa) | 1);
  if (size == 0) return sign;
  int e = std::isinf(v) ? bias + 1 : std::max(std::ilogb(size), 1 - bias);
  double steps = std::isinf(v) ? 0 : std::nearbyint(std::ldexp(size, mantissa - e));
  if (steps >= (2 << mantissa)) steps /= 2, ++e;
  if (e > bias) return uint16_t(sign | (top << mantissa));
  if (steps < (1 << mantissa)) return uint16_t(sign | int(steps));
  return uint16_t(sign | ((e + bias) << mantissa) | (int(steps) - (1 << mantissa)));
}

inline double Get(const Tensor& t, int64_t i) {
  switch (t.type) {
    case F32: return static_cast<const float*>(t.data)[i];
    case F64: return static_cast<const double*>(t.data)[i];
    case I8: return static_cast<const int8_t*>(t.data)[i];
    case U8: return static_cast<const uint8_t*>(t.data)[i];
    case I32: return static_cast<const int32_t*>(t.data)[i];
    case F16: return FromSmall(static_cast<const uint16_t*>(t.data)[i], 10, 5);
    default: return FromSmall(static_cast<const uint16_t*>(t.data)[i], 7, 8);
  }
}
inline void Put(const Tensor& t, int64_t i, double v) {
  if (!Floating(t.type)) {
    const double low = t.type == I8 ? -128 : t.type == U8 ? 0 : -2147483648.0;
    const double high = t.type == I8 ? 127 : t.type == U8 ? 255 : 2147483647.0;
    v = std::isnan(v) ? 0 : std::min(std::max(std::nearbyint(v), low), high);
  }
  switch (t.type) {
    case F32: static_cast<float*>(t.data)[i] = static_cast<float>(v); break;
    case F64: static_cast<double*>(t.data)[i] = v; break;
    case I8: static_cast<int8_t*>(t.data)[i] = static_cast<int8_t>(v); break;
    case U8: static_cast<uint8_t*>(t.data)[i] = static_cast<uint8_t>(v); break;
    case I32: static_cast<int32_t*>(t.data)[i] = static_cast<int32_t>(v); break;
    case F16: static_cast<uint16_t*>(t.data)[i] = ToSmall(v, 10, 5); break;
    default: static_cast<uint16_t*>(t.data)[i] = ToSmall(v, 7, 8); break;
  }
}

// Tensors whose outputs, and inputs where asked for, have memory of their own, which begins at a
// multiple of 64 bytes as that of a call does.
struct Copy {
  Tensors t;
  std::vector<std::vector<char>> memory;
  Copy(const Tensors& from, bool wide, bool inputs = false) : t(from), memory(from.size()) {
    for (size_t k = 0; k < t.size(); ++k) {
      if (!t[k].output && !inputs) continue;
      if (t[k].output && wide && t[k].scaled) t[k].type = F64;
      const size_t bytes = t[k].n * Size(t[k].type);
      memory[k].resize(bytes + 64);
      char* const data = memory[k].data() + (64 - reinterpret_cast<uintptr_t>(memory[k].data()) % 64);
      if (t[k].output) {
        std::memset(data, 0xff, bytes);  // no number, or -1: what is not written stands out
      } else {
        std::memcpy(data, t[k].data, bytes);
      }
      t[k].data = data;
    }
  }
};
// Writes the outputs of `from` to `to`, rounded to its types.
inline void Emit(const Tensors& from, const Tensors& to) {
  for (size_t k = 0; k < to.size(); ++k) {
    if (!to[k].output) continue;
    if (from[k].type == to[k].type) {
      std::memcpy(to[k].data, from[k].data, to[k].n * Size(to[k].type));
    } else {
      for (int64_t i = 0; i < to[k].n; ++i) Put(to[k], i, Get(from[k], i));
    }
  }
}

inline double Scale(const Tensor& t, int64_t first, int64_t count) {
  double sum = 0;
  for (int64_t i = first; i < first + count; ++i) sum += Get(t, i) * Get(t, i);
  return std::max(std::sqrt(sum / count), double(std::numeric_limits<float>::min()));
}
// |want| + scale for every element.
inline std::vector<double> Units(const Tensor& want) {
  std::vector<double> units(want.n);
  const int64_t block = want.per_row ? want.row : want.n;
  for (int64_t first = 0; first < want.n; first += block) {
    const double scale = Scale(want, first, block);
    for (int64_t i = first; i < first + block; ++i) units[i] = std::fabs(Get(want, i)) + scale;
  }
  return units;
}

struct Random {
  uint64_t state = 0x243f6a8885a308d3;
  double Next() {  // in (0, 1)
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (double((z ^ (z >> 31)) >> 12) + 0.5) / 4503599627370496.0;
  }
  double Normal() { return std::sqrt(-2 * std::log(Next())) * std::cos(6.283185307179586 * Next()); }
};
// Other inputs of the declared distributions.
inline void DrawInputs(Tensors& t) {
  Random random;
  for (Tensor& one : t) {
    for (int64_t i = 0; !one.output && i < one.n; ++i) {
      const double u = random.Next(), range = one.high - one.low;
      if (one.draw == NORMAL) Put(one, i, one.low + one.high * random.Normal());
      if (one.draw == UNIFORM) Put(one, i, one.low + u * range);
      if (one.draw == INTEGERS) Put(one, i, one.low + std::floor(u * (range + 1)));
      if (one.draw != CODES) continue;
      int byte = 0;
      for (int k = 0; k < 4; ++k) byte |= int(random.Next() * (one.high + 1)) << 2 * k;
      Put(one, i, byte);
    }
  }
}
// Changes one element of an input within its range, in one of two ways.
inline void Change(const Tensor& t, int64_t i, bool reflect) {
  const double v = Get(t, i);
  if (t.draw == NORMAL) return Put(t, i, reflect ? 2 * t.low - v : 1.5 * v + 0.25 * t.high);
  if (t.draw == UNIFORM) return Put(t, i, reflect ? t.low + t.high - v : (t.low + v) / 2);
  if (t.draw == INTEGERS) {
    const double other = reflect ? t.low + t.high - v : v + 1 > t.high ? t.low : v + 1;
    return Put(t, i, std::min(std::max(other, t.low), t.high));
  }
  int byte = 0;
  for (int k = 0; k < 4; ++k) {
    const int code = (int(v) >> 2 * k) & 3, top = int(t.high);
    byte |= (reflect ? top - std::min(code, top) : (code + 1) % (top + 1)) << 2 * k;
  }
  Put(t, i, byte);
}
// The output with most elements: where one has to be chosen.
inline Tensor& Largest(Tensors& t) {
  Tensor* best = nullptr;
  for (Tensor& one : t) {
    if (one.output && (best == nullptr || one.n > best->n)) best = &one;
  }
  return *best;
}
inline double Significant(double v, int bits, bool truncate) {
  if (!std::isfinite(v) || v == 0) return v;
  int exponent;
  const double part = std::ldexp(std::frexp(v, &exponent), bits);
  return std::ldexp(truncate ? std::trunc(part) : std::nearbyint(part), exponent - bits);
}
}  // namespace audit
)";

}  // namespace assay
