// How far the approximate functions may be from the exact value. PTX fixes bounds, not bits.
//
// The emulator computes in double and rounds to the nearest, so it errs far less; with
// LaunchOptions::perturb_approximations each result moves by a random amount within the bound.
// Exact cases (operands that are zero, infinite or NaN) never move.
#ifndef ASSAY_EMULATOR_OPS_APPROXIMATE_H_
#define ASSAY_EMULATOR_OPS_APPROXIMATE_H_

namespace assay::emulator {

enum class BoundKind {
  kUlp,       // units in the last place of the exact result
  kRelative,  // of the exact result
  kAbsolute,
};

struct ApproximationBound {
  BoundKind kind = BoundKind::kUlp;
  double value = 0;
};

// PTX ISA 9.7.3.13: at most 1 ulp over all inputs.
inline constexpr ApproximationBound kReciprocalBound{BoundKind::kUlp, 1.0};
// 9.7.3.15: 2^-23 over all positive finite numbers.
inline constexpr ApproximationBound kSquareRootBound{BoundKind::kRelative, 0x1p-23};
// 9.7.3.16: 2^-22.9 over all positive finite numbers.
inline constexpr ApproximationBound kReciprocalRootBound{BoundKind::kRelative,
                                                         1.2776535e-07 /* 2^-22.9 */};
// 9.7.3.8: 2 ulp; of div.approx for a divisor from 2^-126 to 2^126 in magnitude.
inline constexpr ApproximationBound kDivideBound{BoundKind::kUlp, 2.0};
// 9.7.3.21: 2 ulp over all inputs.
inline constexpr ApproximationBound kExp2Bound{BoundKind::kUlp, 2.0};
// 9.7.3.20: 2^-22, absolute for operands in (0.5, 2) and relative outside.
inline constexpr double kLog2Bound = 0x1p-22;
// 9.7.3.18 and 9.7.3.19: absolute, 2^-20.5 for operands in [-2 pi, 2 pi], 2^-14.7 in
// [-100 pi, 100 pi]; nothing is said about the rest, which is kept within the latter.
inline constexpr double kSineNearBound = 6.7434957e-07;  // 2^-20.5
inline constexpr double kSineFarBound = 3.7571545e-05;   // 2^-14.7
inline constexpr double kSineNear = 6.283185307179586;
inline constexpr double kSineFar = 314.1592653589793;
// 9.7.3.22: 2^-11 over all inputs.
inline constexpr ApproximationBound kTanhBound{BoundKind::kRelative, 0x1p-11};
// 9.7.4.10: 2^-9.9 for f16 and 2^-7 for bf16.
inline constexpr ApproximationBound kExp2F16Bound{BoundKind::kRelative, 1.0466537e-03 /* 2^-9.9 */};
inline constexpr ApproximationBound kExp2BF16Bound{BoundKind::kRelative, 0x1p-7};
// 9.7.4.9: 2^-10.987 for f16 and 2^-8 for bf16.
inline constexpr ApproximationBound kTanhF16Bound{BoundKind::kAbsolute,
                                                  4.92700e-04 /* 2^-10.987 */};
inline constexpr ApproximationBound kTanhBF16Bound{BoundKind::kAbsolute, 0x1p-8};
// 9.7.3.14, 9.7.3.17: the results have 20 bits after the point; no bound is given, and they are
// never moved. This is the emulator's own.
inline constexpr ApproximationBound kGrossF64Bound{BoundKind::kRelative, 0x1p-21};

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_OPS_APPROXIMATE_H_
