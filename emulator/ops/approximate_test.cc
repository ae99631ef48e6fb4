// Approximate functions against MPFR: special cases exactly, the rest within the documented bound,
// plain and perturbed.
#include <gtest/gtest.h>

#include <cinttypes>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "emulator/ops/approximate.h"
#include "emulator/testing/float_reference.h"
#include "emulator/testing/op_fixture.h"
#include "emulator/testing/op_inputs.h"

namespace assay::emulator {
namespace {

constexpr uint64_t kSeed = 60221;

// The bounds of the PTX ISA, written once more.
enum class Bound { kUlp, kRelative, kAbsolute, kLog, kSine };
struct Function {
  const char* text;
  RefFunction function;
  Bound bound;
  double value;
  bool flush;
  RefFormat format = RefFormat::kF32;
};
const Function kFunctions[] = {
    {"rcp.approx.f32 %rx, %ra", RefFunction::kReciprocal, Bound::kUlp, 1, false},
    {"rcp.approx.ftz.f32 %rx, %ra", RefFunction::kReciprocal, Bound::kUlp, 1, true},
    {"sqrt.approx.f32 %rx, %ra", RefFunction::kSquareRoot, Bound::kRelative, std::exp2(-23), false},
    {"sqrt.approx.ftz.f32 %rx, %ra", RefFunction::kSquareRoot, Bound::kRelative, std::exp2(-23),
     true},
    {"rsqrt.approx.f32 %rx, %ra", RefFunction::kReciprocalRoot, Bound::kRelative, std::exp2(-22.9),
     false},
    {"rsqrt.approx.ftz.f32 %rx, %ra", RefFunction::kReciprocalRoot, Bound::kRelative,
     std::exp2(-22.9), true},
    {"ex2.approx.f32 %rx, %ra", RefFunction::kExp2, Bound::kUlp, 2, false},
    {"ex2.approx.ftz.f32 %rx, %ra", RefFunction::kExp2, Bound::kUlp, 2, true},
    {"lg2.approx.f32 %rx, %ra", RefFunction::kLog2, Bound::kLog, std::exp2(-22), false},
    {"lg2.approx.ftz.f32 %rx, %ra", RefFunction::kLog2, Bound::kLog, std::exp2(-22), true},
    {"sin.approx.f32 %rx, %ra", RefFunction::kSine, Bound::kSine, 0, false},
    {"sin.approx.ftz.f32 %rx, %ra", RefFunction::kSine, Bound::kSine, 0, true},
    {"cos.approx.f32 %rx, %ra", RefFunction::kCosine, Bound::kSine, 0, false},
    {"cos.approx.ftz.f32 %rx, %ra", RefFunction::kCosine, Bound::kSine, 0, true},
    {"tanh.approx.f32 %rx, %ra", RefFunction::kTanh, Bound::kRelative, std::exp2(-11), false},
    {"div.approx.f32 %rx, %ra, %rb", RefFunction::kDivide, Bound::kUlp, 2, false},
    {"div.approx.ftz.f32 %rx, %ra, %rb", RefFunction::kDivide, Bound::kUlp, 2, true},
    {"div.full.f32 %rx, %ra, %rb", RefFunction::kDivide, Bound::kUlp, 2, false},
    {"div.full.ftz.f32 %rx, %ra, %rb", RefFunction::kDivide, Bound::kUlp, 2, true},
    {"ex2.approx.f16 %hx, %ha", RefFunction::kExp2, Bound::kRelative, std::exp2(-9.9), false,
     RefFormat::kF16},
    {"ex2.approx.ftz.bf16 %hx, %ha", RefFunction::kExp2, Bound::kRelative, std::exp2(-7), true,
     RefFormat::kBF16},
    {"tanh.approx.f16 %hx, %ha", RefFunction::kTanh, Bound::kAbsolute, std::exp2(-10.987), false,
     RefFormat::kF16},
    {"tanh.approx.bf16 %hx, %ha", RefFunction::kTanh, Bound::kAbsolute, std::exp2(-8), false,
     RefFormat::kBF16},
};

double LargestOf(RefFormat format) {
  return format == RefFormat::kF16
             ? 65504.0
             : RefValue(format, format == RefFormat::kF32 ? 0x7f7fffff : 0x7f7f);
}
double LeastNormalOf(RefFormat format) { return format == RefFormat::kF16 ? 0x1p-14 : 0x1p-126; }

// Whether `got` is as near as the bound asks. Results out of the format's range, or flushed, are
// held against what the exact value would become.
bool Near(const Function& function, double x, double y, uint64_t bits, double* part) {
  const double got = RefValue(function.format, bits);
  const RefDistance distance = DistanceFrom(function.function, x, y, got);
  double off = 0;
  switch (function.bound) {
    case Bound::kUlp:
      off = distance.ulps / function.value;
      break;
    case Bound::kRelative:
      off = distance.relative / function.value;
      break;
    case Bound::kAbsolute:
      off = distance.absolute / function.value;
      break;
    case Bound::kLog:
      off = (x > 0.5 && x < 2 ? distance.absolute : distance.relative) / function.value;
      break;
    case Bound::kSine:
      off = distance.absolute / std::exp2(std::abs(x) <= 2 * M_PI ? -20.5 : -14.7);
      break;
  }
  if (off <= 1.0) {
    *part = off;
    return true;
  }
  const double exact = std::abs(distance.exact);
  if (std::isinf(got)) {
    const double largest = LargestOf(function.format);
    const double below = RefValue(function.format, RefEncode(function.format, largest) - 1);
    return exact >= largest + (largest - below) / 2 &&
           std::signbit(got) == std::signbit(distance.exact);
  }
  // Subnormal results have fewer bits than a relative bound supposes, and .ftz makes them zero.
  const double least = LeastNormalOf(function.format);
  if (exact >= least * 1.01) return false;
  if (function.flush) return got == 0;
  const double last_place = function.format == RefFormat::kF16 ? 0x1p-24 : 0x1p-149;
  return distance.absolute <= last_place;
}

// What a function gives where PTX lists it; true when it does.
bool IsListed(const Function& function, double x, double* result) {
  const double infinity = HUGE_VAL;
  const double nan = std::nan("");
  const bool zero = x == 0;
  if (std::isnan(x)) {
    *result = nan;
    return true;
  }
  const bool ends = std::isinf(x);
  if (!zero && !ends && !(x < 0)) return false;
  switch (function.function) {
    case RefFunction::kReciprocal:
      *result = zero ? std::copysign(infinity, x) : std::copysign(0.0, x);
      return zero || ends;
    case RefFunction::kSquareRoot:
      *result = zero || x > 0 ? x : nan;
      return true;
    case RefFunction::kReciprocalRoot:
      *result = zero ? std::copysign(infinity, x) : (x > 0 ? 0.0 : nan);
      return true;
    case RefFunction::kExp2:
      *result = zero ? 1.0 : (x > 0 ? infinity : 0.0);
      return zero || ends;
    case RefFunction::kLog2:
      *result = zero ? -infinity : (x > 0 ? infinity : nan);
      return true;
    case RefFunction::kSine:
      *result = zero ? x : nan;
      return zero || ends;
    case RefFunction::kCosine:
      *result = zero ? 1.0 : nan;
      return zero || ends;
    case RefFunction::kTanh:
      *result = zero ? x : std::copysign(1.0, x);
      return zero || ends;
    case RefFunction::kDivide:
      return false;
  }
  return false;
}

// Division by the rules: false when only the bound is to be looked at.
bool IsListedDivision(const Function& function, double x, double y, double* result) {
  const bool approximate = std::string(function.text).find("approx") != std::string::npos;
  if (std::isnan(x) || std::isnan(y)) {
    *result = std::nan("");
    return true;
  }
  const double sign = std::signbit(x) == std::signbit(y) ? 1.0 : -1.0;
  if (approximate && std::abs(y) > 0x1p126 && !std::isinf(y)) {
    *result = std::isinf(x) ? std::nan("") : 0.0 * sign;
    return true;
  }
  if (x != 0 && !std::isinf(x) && y != 0 && !std::isinf(y)) return false;
  const bool no_value = (x == 0 && y == 0) || (std::isinf(x) && std::isinf(y));
  *result = no_value ? std::nan("") : (x == 0 || std::isinf(y) ? 0.0 : HUGE_VAL) * sign;
  return true;
}

std::vector<OpInputs> InputsFor(const Function& function) {
  if (function.format != RefFormat::kF32) {
    std::vector<OpInputs> inputs;
    for (uint64_t bits = 0; bits < 0x10000; ++bits) inputs.push_back({bits});
    return inputs;
  }
  auto inputs = function.function == RefFunction::kDivide
                    ? MakeInputs({ValueKind::kF32, ValueKind::kF32}, 60000, 30000, kSeed)
                    : MakeInputs({ValueKind::kF32}, 2000, 40000, kSeed);
  // Many that are neither tiny nor huge.
  for (uint32_t i = 0; i < 30000; ++i) {
    const double x = std::ldexp(1.0 + i / 30000.0, static_cast<int>(i * 7 % 18) - 10);
    inputs.push_back({RefFromDouble(RefFormat::kF32, RefRounding::kNearest, i % 3 == 0 ? -x : x),
                      RefFromDouble(RefFormat::kF32, RefRounding::kNearest, 1 / x + 1)});
  }
  return inputs;
}

// Runs a function over its inputs; returns the share of the bound that was used, at most.
double CheckFunction(const Function& function, bool perturb, CaseCount* count) {
  OpFixture fixture;
  EXPECT_TRUE(fixture.Decode(function.text).ok()) << function.text;
  fixture.set_perturb(perturb);
  const std::vector<OpInputs> inputs = InputsFor(function);
  const std::string output = fixture.outputs()[0];
  const bool divides = function.function == RefFunction::kDivide;
  double most = 0;
  int failures = 0;
  for (size_t first = 0; first + kLanes <= inputs.size(); first += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const OpInputs& in = inputs[first + static_cast<size_t>(lane)];
      fixture.Set(fixture.inputs()[0], lane, in[0]);
      if (divides) fixture.Set("%rb", lane, in[1]);
    }
    fixture.Run(kAllLanes);
    for (int lane = 0; lane < kLanes; ++lane) {
      const OpInputs& in = inputs[first + static_cast<size_t>(lane)];
      const auto ready = [&](uint64_t bits) {
        return function.flush ? RefFlush(function.format, bits) : bits;
      };
      const double x = RefValue(function.format, ready(in[0]));
      const double y = divides ? RefValue(function.format, ready(in[1])) : 0;
      const uint64_t bits = fixture.Get(output, lane);
      double listed = 0;
      double part = 0;
      bool right = false;
      if (divides ? IsListedDivision(function, x, y, &listed) : IsListed(function, x, &listed)) {
        right = bits == RefEncode(function.format, listed);
      } else {
        right = !RefIsNan(function.format, bits) && Near(function, x, y, bits, &part);
      }
      most = std::max(most, part);
      if (!right && ++failures < 6) {
        ADD_FAILURE() << function.text << (perturb ? " (perturbed)" : "") << ": x = " << x
                      << ", y = " << y << ": got " << RefValue(function.format, bits);
      }
    }
  }
  EXPECT_EQ(failures, 0) << function.text;
  count->Add(static_cast<int64_t>(inputs.size()));
  return most;
}

TEST(ApproximateTest, WithinTheDocumentedBounds) {
  CaseCount count("approximate functions");
  for (const Function& function : kFunctions) {
    const double plain = CheckFunction(function, false, &count);
    const double perturbed = CheckFunction(function, true, &count);
    std::printf("%-34s uses %.3f of its bound, perturbed %.3f\n", function.text, plain, perturbed);
    EXPECT_LE(plain, 1.0);
    // Only a bound near the distance of two numbers leaves no room.
    EXPECT_GT(perturbed, 0.9) << function.text;
  }
}

TEST(ApproximateTest, PerturbationChangesResultsButNotExactOnes) {
  OpFixture fixture;
  fixture.set_perturb(true);
  ASSERT_TRUE(fixture.Decode("ex2.approx.f32 %rx, %ra").ok());
  for (int lane = 0; lane < kLanes; ++lane) fixture.Set("%ra", lane, lane < 16 ? 0x3f000000 : 0);
  std::set<uint64_t> moved;
  for (int i = 0; i < 8; ++i) {
    fixture.Run(kAllLanes);
    for (int lane = 0; lane < 16; ++lane) moved.insert(fixture.Get("%rx", lane));
    for (int lane = 16; lane < kLanes; ++lane) EXPECT_EQ(fixture.Get("%rx", lane), 0x3f800000u);
  }
  EXPECT_GE(moved.size(), 4u);
}

TEST(ApproximateTest, PackedHalvesAreTwoNumbers) {
  CaseCount count("packed approximate functions");
  for (const char* form :
       {"ex2.approx.f16", "tanh.approx.f16", "ex2.approx.ftz.bf16", "tanh.approx.bf16"}) {
    OpFixture single;
    OpFixture packed;
    ASSERT_TRUE(single.Decode(absl::StrCat(form, " %hx, %ha")).ok()) << form;
    ASSERT_TRUE(packed.Decode(absl::StrCat(form, "x2 %rx, %ra")).ok()) << form;
    const auto inputs = MakeInputs({ValueKind::kF16x2}, 2000, 4000, kSeed);
    for (size_t first = 0; first + kLanes <= inputs.size(); first += kLanes) {
      for (int half = 0; half < 2; ++half) {
        for (int lane = 0; lane < kLanes; ++lane) {
          const uint64_t bits = inputs[first + static_cast<size_t>(lane)][0];
          single.Set("%ha", lane, bits >> (16 * half));
          packed.Set("%ra", lane, bits);
        }
        single.Run(kAllLanes);
        packed.Run(kAllLanes);
        for (int lane = 0; lane < kLanes; ++lane) {
          EXPECT_EQ(packed.Get("%rx", lane) >> (16 * half) & 0xffff, single.Get("%hx", lane));
        }
      }
    }
    count.Add(static_cast<int64_t>(inputs.size()));
  }
}

// f64: gross approximations have the upper word only; rsqrt.approx is as good as double allows.
TEST(ApproximateTest, F64) {
  CaseCount count("f64 approximations");
  const auto inputs = MakeInputs({ValueKind::kF64}, 2000, 20000, kSeed);
  struct {
    const char* text;
    RefFunction function;
    bool gross;
    double bound;
  } kForms[] = {
      {"rcp.approx.ftz.f64 %dx, %da", RefFunction::kReciprocal, true, kGrossF64Bound.value},
      {"rsqrt.approx.ftz.f64 %dx, %da", RefFunction::kReciprocalRoot, true, kGrossF64Bound.value},
      {"rsqrt.approx.f64 %dx, %da", RefFunction::kReciprocalRoot, false, 0x1p-52},
  };
  for (const auto& form : kForms) {
    OpFixture fixture;
    ASSERT_TRUE(fixture.Decode(form.text).ok()) << form.text;
    int failures = 0;
    for (const OpInputs& in : inputs) {
      fixture.Set("%da", 3, in[0]);
      fixture.Run(8);
      const uint64_t bits = fixture.Get("%dx", 3);
      const uint64_t operand =
          form.gross ? RefFlush(RefFormat::kF64, in[0] & 0xffffffff00000000) : in[0];
      const double x = RefValue(RefFormat::kF64, operand);
      const Function function{form.text,  form.function, Bound::kRelative,
                              form.bound, form.gross,    RefFormat::kF64};
      double listed = 0;
      bool right = false;
      if (IsListed(function, x, &listed)) {
        const uint64_t nan =
            form.gross ? 0x7fffffff00000000
                       : (std::isnan(x) ? in[0] | uint64_t{1} << 51 : uint64_t{0xfff8000000000000});
        right = std::isnan(listed) ? bits == nan : bits == RefEncode(RefFormat::kF64, listed);
      } else {
        const double got = RefValue(RefFormat::kF64, bits);
        const RefDistance distance = DistanceFrom(form.function, x, 0, got);
        const bool flushed = form.gross && got == 0 && distance.absolute < 0x1.001p-1022;
        right = distance.relative <= form.bound || flushed;
        if (form.gross) right = right && (bits & 0xffffffff) == 0;
      }
      if (!right && ++failures < 6) {
        ADD_FAILURE() << form.text << ": " << std::hex << in[0] << " gives " << bits;
      }
    }
    EXPECT_EQ(failures, 0) << form.text;
    count.Add(static_cast<int64_t>(inputs.size()));
  }
}

TEST(ApproximateTest, RefusesFormsThatDoNotExist) {
  for (const char* text :
       {"ex2.f32 %rx, %ra", "ex2.approx.f64 %dx, %da", "tanh.approx.ftz.f32 %rx, %ra",
        "rcp.approx.f64 %dx, %da", "ex2.approx.bf16 %hx, %ha", "ex2.approx.ftz.f16 %hx, %ha",
        "sin.rn.f32 %rx, %ra", "div.approx.f64 %dx, %da, %db", "rcp.full.f32 %rx, %ra",
        "lg2.approx.f16 %hx, %ha"}) {
    EXPECT_EQ(DecodeOnly(text).code(), absl::StatusCode::kUnimplemented) << text;
  }
}

}  // namespace
}  // namespace assay::emulator
