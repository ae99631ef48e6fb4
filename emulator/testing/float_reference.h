// Floating-point results from MPFR, which knows nothing of how the emulator gets them.
#ifndef ASSAY_EMULATOR_TESTING_FLOAT_REFERENCE_H_
#define ASSAY_EMULATOR_TESTING_FLOAT_REFERENCE_H_

#include <cstdint>
#include <string_view>

namespace assay::emulator {

enum class RefFormat { kF16, kBF16, kF32, kF64, kTF32, kE4M3, kE5M2 };
enum class RefRounding { kNearest, kZero, kDown, kUp, kNearestAway };
enum class RefOperation { kAdd, kSubtract, kMultiply, kFma, kDivide, kReciprocal, kSquareRoot };

// "rn", "rz", "rm", "rp", also with an i behind.
RefRounding RefRoundingOf(std::string_view name);

// The exact value of an encoding, as a double; tf32 in the upper bits of 32.
double RefValue(RefFormat format, uint64_t bits);
bool RefIsNan(RefFormat format, uint64_t bits);
bool RefIsSubnormal(RefFormat format, uint64_t bits);
// The canonical NaN.
uint64_t RefNan(RefFormat format);
// A subnormal becomes the zero of its sign.
uint64_t RefFlush(RefFormat format, uint64_t bits);
// The encoding of an exact value of the format.
uint64_t RefEncode(RefFormat format, double value);

// One operation on encodings, rounded once to the format. NaN in gives NaN out: the canonical one,
// for f64 the first operand that is one, quiet.
uint64_t RefArithmetic(RefFormat format, RefOperation operation, RefRounding rounding, uint64_t a,
                       uint64_t b, uint64_t c);

// A double, or an integer, rounded once to the format. With `finite` what is too large becomes the
// largest number.
uint64_t RefFromDouble(RefFormat format, RefRounding rounding, double value, bool finite = false);
uint64_t RefFromSigned(RefFormat format, RefRounding rounding, int64_t value);
uint64_t RefFromUnsigned(RefFormat format, RefRounding rounding, uint64_t value);

// A double rounded to an integral double.
double RefIntegral(RefRounding rounding, double value);

// .sat on an encoding of f16, bf16, f32 or f64.
uint64_t RefSaturate(RefFormat format, uint64_t bits);
// .relu likewise.
uint64_t RefRelu(RefFormat format, uint64_t bits);

// How far `got` is from the function's value at x (and y), and how far an ulp of f32 is at that
// value. Exact to far more than a double.
enum class RefFunction {
  kReciprocal,
  kSquareRoot,
  kReciprocalRoot,
  kDivide,
  kExp2,
  kLog2,
  kSine,
  kCosine,
  kTanh
};
struct RefDistance {
  double exact = 0;  // the value, cut to a double
  double absolute = 0;
  double relative = 0;
  double ulps = 0;  // of f32
};
RefDistance DistanceFrom(RefFunction function, double x, double y, double got);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_TESTING_FLOAT_REFERENCE_H_
