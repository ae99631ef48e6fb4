// Conversions between scalar types: floating point against MPFR, integers against 128-bit code.
// Halves are converted in all their values.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "emulator/testing/float_reference.h"
#include "emulator/testing/op_fixture.h"
#include "emulator/testing/op_inputs.h"

namespace assay::emulator {
namespace {

using Int = __int128;
constexpr uint64_t kSeed = 1618;

struct IntegerType {
  const char* name;
  int bits;
  bool is_signed;

  Int Value(uint64_t raw) const {
    const uint64_t low = bits == 64 ? raw : raw & ((uint64_t{1} << bits) - 1);
    if (is_signed && (low >> (bits - 1)) != 0) return Int{low} - (Int{1} << bits);
    return low;
  }
  Int Least() const { return is_signed ? -(Int{1} << (bits - 1)) : 0; }
  Int Most() const { return (Int{1} << (is_signed ? bits - 1 : bits)) - 1; }
};
constexpr IntegerType kIntegers[] = {{"u8", 8, false},   {"s8", 8, true},    {"u16", 16, false},
                                     {"s16", 16, true},  {"u32", 32, false}, {"s32", 32, true},
                                     {"u64", 64, false}, {"s64", 64, true}};

struct FloatType {
  const char* name;
  RefFormat format;
  int bits;
  int precision;
};
constexpr FloatType kFloats[] = {{"f16", RefFormat::kF16, 16, 11},
                                 {"bf16", RefFormat::kBF16, 16, 8},
                                 {"f32", RefFormat::kF32, 32, 24},
                                 {"f64", RefFormat::kF64, 64, 53}};
constexpr const char* kModes[] = {"rn", "rz", "rm", "rp"};

// The registers that hold a type: its own width, and wider ones.
std::string WidthsFor(int bits) {
  if (bits <= 16) return "hrd";
  return bits == 32 ? "rd" : "d";
}
char WidthOf(int bits) { return WidthsFor(bits)[0]; }

std::string Operands(char to, char from) {
  return absl::StrCat(" %", std::string(1, to), "x, %", std::string(1, from), "a");
}

std::vector<OpInputs> IntegerInputs(int count) {
  return MakeInputs({ValueKind::kBits64}, 1000, static_cast<size_t>(count), kSeed);
}

std::vector<OpInputs> FloatInputs(const FloatType& type) {
  if (type.bits == 16) {
    std::vector<OpInputs> inputs;
    // What is above the half must not matter.
    for (uint64_t bits = 0; bits < 0x10000; ++bits) inputs.push_back({bits | bits << 33});
    return inputs;
  }
  auto inputs =
      MakeInputs({type.bits == 32 ? ValueKind::kF32 : ValueKind::kF64}, 3000, 8000, kSeed);
  // Ties and their neighbours for each narrower format, and for integers.
  for (uint32_t i = 0; i < 12000; ++i) {
    const int exponent = static_cast<int>(i * 13 % 180) - 150;
    const double tie = std::ldexp(2 * (1024.0 + i % 1024) + 1, exponent);
    const double near = i % 3 == 0 ? tie : (i % 3 == 1 ? tie * (1 + 0x1p-23) : tie * (1 - 0x1p-23));
    const double integer = (i % 4000) / 8.0 + (i % 5 == 0 ? 65530 : 0);
    for (const double value : {near, -near, integer, -integer}) {
      inputs.push_back({RefFromDouble(type.format, RefRounding::kNearest, value)});
    }
  }
  return inputs;
}

TEST(ConvertTest, IntegersToIntegers) {
  CaseCount count("cvt integer to integer");
  const auto inputs = IntegerInputs(1500);
  for (const IntegerType& from : kIntegers) {
    for (const IntegerType& to : kIntegers) {
      for (const bool saturate : {false, true}) {
        for (const char to_width : WidthsFor(to.bits)) {
          for (const char from_width : WidthsFor(from.bits)) {
            const std::string text = absl::StrCat("cvt", saturate ? ".sat." : ".", to.name, ".",
                                                  from.name, Operands(to_width, from_width));
            count.Add(CheckOp(text, inputs, [&](const OpInputs& in) {
              Int value = from.Value(in[0]);
              if (saturate) value = std::clamp(value, to.Least(), to.Most());
              return OpOutputs{static_cast<uint64_t>(to.Value(static_cast<uint64_t>(value)))};
            }));
          }
        }
      }
    }
  }
}

TEST(ConvertTest, IntegersToFloats) {
  CaseCount count("cvt integer to float");
  auto inputs = IntegerInputs(4000);
  for (int shift = 0; shift < 64; ++shift) {
    for (const uint64_t pattern : {0x4000000000000001u, 0x6000000000000000u, 0x4000002000000000u,
                                   0x4000001000000400u, 0x7fffffffffffffffu, 0x4008000000000001u}) {
      inputs.push_back({pattern >> shift});
      inputs.push_back({0 - (pattern >> shift)});
    }
  }
  for (const IntegerType& from : kIntegers) {
    for (const FloatType& to : kFloats) {
      for (const char* mode : kModes) {
        for (const bool saturate : {false, true}) {
          if (saturate && to.format == RefFormat::kBF16) continue;
          const std::string text =
              absl::StrCat("cvt.", mode, saturate ? ".sat." : ".", to.name, ".", from.name,
                           Operands(WidthOf(to.bits), WidthOf(from.bits)));
          count.Add(CheckOp(text, inputs, [&](const OpInputs& in) {
            const Int value = from.Value(in[0]);
            const RefRounding rounding = RefRoundingOf(mode);
            uint64_t bits =
                from.is_signed ? RefFromSigned(to.format, rounding, static_cast<int64_t>(value))
                               : RefFromUnsigned(to.format, rounding, static_cast<uint64_t>(value));
            if (saturate) bits = RefSaturate(to.format, bits);
            return OpOutputs{bits};
          }));
        }
      }
    }
  }
}

uint64_t ToInteger(const IntegerType& to, const FloatType& from, RefRounding rounding,
                   uint64_t bits) {
  if (RefIsNan(from.format, bits)) {
    // PTX ISA 9.7.9.21, integer notes.
    if (from.format != RefFormat::kF64 && to.bits != 64) return 0;
    return static_cast<uint64_t>(to.Value(uint64_t{1} << (to.bits - 1)));
  }
  const double value = RefIntegral(rounding, RefValue(from.format, bits));
  const auto least = static_cast<double>(to.Least());
  if (value <= least) return static_cast<uint64_t>(to.Least());
  if (value >= std::ldexp(1.0, to.bits - (to.is_signed ? 1 : 0))) {
    return static_cast<uint64_t>(to.Most());
  }
  return static_cast<uint64_t>(static_cast<Int>(value));
}

TEST(ConvertTest, FloatsToIntegers) {
  CaseCount count("cvt float to integer");
  for (const FloatType& from : kFloats) {
    const auto inputs = FloatInputs(from);
    for (const IntegerType& to : kIntegers) {
      for (const char* mode : kModes) {
        const bool flush = from.format == RefFormat::kF32 && (mode[1] == 'p' || mode[1] == 'm');
        const bool wide = to.bits < 64 && mode[1] == 'z';
        const std::string text = absl::StrCat(
            "cvt.", mode, "i", flush ? ".ftz." : ".", to.name, ".", from.name,
            Operands(wide ? WidthsFor(to.bits)[1] : WidthOf(to.bits), WidthOf(from.bits)));
        count.Add(CheckOp(text, inputs, [&](const OpInputs& in) {
          const uint64_t mask = ~uint64_t{0} >> (64 - from.bits);
          const uint64_t bits = flush ? RefFlush(from.format, in[0] & mask) : in[0] & mask;
          return OpOutputs{ToInteger(to, from, RefRoundingOf(mode), bits)};
        }));
      }
    }
  }
  const auto inputs = FloatInputs(kFloats[2]);
  for (const char* text : {"cvt.rzi.s32.f32 %rx, %ra", "cvt.rzi.sat.s32.f32 %rx, %ra"}) {
    count.Add(CheckOp(text, inputs, [&](const OpInputs& in) {
      return OpOutputs{ToInteger(kIntegers[5], kFloats[2], RefRounding::kZero, in[0])};
    }));
  }
}

// NaN of f16 and bf16 in f64 keep nothing but being one; of f32, what double makes of them.
uint64_t Widened(const FloatType& from, uint64_t bits) {
  if (!RefIsNan(from.format, bits)) return RefEncode(RefFormat::kF64, RefValue(from.format, bits));
  const int fraction = from.precision - 1;
  const uint64_t payload = (bits & ((uint64_t{1} << fraction) - 1)) << (52 - fraction);
  return (bits >> (from.bits - 1)) << 63 | 0x7ff8000000000000 | payload;
}

TEST(ConvertTest, FloatsToFloats) {
  CaseCount count("cvt float to float");
  for (const FloatType& from : kFloats) {
    const auto inputs = FloatInputs(from);
    for (const FloatType& to : kFloats) {
      const bool loses = to.precision < from.precision ||
                         (from.format == RefFormat::kBF16 && to.format == RefFormat::kF16);
      for (int form = 0; form < 16; ++form) {
        const char* mode = kModes[form & 3];
        const bool flush = (form & 4) != 0;
        const bool saturate = (form & 8) != 0;
        if (!loses && (form & 3) != 0) continue;
        const bool single = from.format == RefFormat::kF32 || to.format == RefFormat::kF32;
        if (flush && !single) continue;
        if (saturate && to.format == RefFormat::kBF16) continue;
        const std::string text =
            absl::StrCat("cvt", loses ? "." : "", loses ? mode : "", flush ? ".ftz" : "",
                         saturate ? ".sat." : ".", to.name, ".", from.name,
                         Operands(WidthOf(to.bits), WidthOf(from.bits)));
        count.Add(CheckOp(text, inputs, [&](const OpInputs& in) {
          uint64_t bits = in[0] & ~uint64_t{0} >> (64 - from.bits);
          if (flush && from.format == RefFormat::kF32) bits = RefFlush(from.format, bits);
          uint64_t result =
              to.format == RefFormat::kF64
                  ? Widened(from, bits)
                  : RefFromDouble(to.format, RefRoundingOf(mode), RefValue(from.format, bits));
          if (saturate) result = RefSaturate(to.format, result);
          if (flush && to.format == RefFormat::kF32) result = RefFlush(to.format, result);
          return OpOutputs{result};
        }));
      }
    }
  }
}

TEST(ConvertTest, FloatsToIntegralFloats) {
  CaseCount count("cvt to integral float");
  for (const FloatType& type : kFloats) {
    const auto inputs = FloatInputs(type);
    for (const char* mode : kModes) {
      const bool flush = type.format == RefFormat::kF32 && mode[1] == 'p';
      const std::string text =
          absl::StrCat("cvt.", mode, "i", flush ? ".ftz." : ".", type.name, ".", type.name,
                       Operands(WidthOf(type.bits), WidthOf(type.bits)));
      count.Add(CheckOp(text, inputs, [&](const OpInputs& in) {
        uint64_t bits = in[0] & ~uint64_t{0} >> (64 - type.bits);
        if (flush) bits = RefFlush(type.format, bits);
        if (RefIsNan(type.format, bits)) {
          return OpOutputs{type.format == RefFormat::kF64 ? Widened(type, bits)
                                                          : RefNan(type.format)};
        }
        const double value = RefIntegral(RefRoundingOf(mode), RefValue(type.format, bits));
        return OpOutputs{RefEncode(type.format, value)};
      }));
    }
  }
}

TEST(ConvertTest, ReluFiniteAndTf32) {
  CaseCount count("cvt relu satfinite tf32");
  const auto inputs = FloatInputs(kFloats[2]);
  struct {
    const char* name;
    RefFormat format;
    char width;
  } kResults[] = {{"f16", RefFormat::kF16, 'h'},
                  {"bf16", RefFormat::kBF16, 'h'},
                  {"tf32", RefFormat::kTF32, 'r'}};
  for (const auto& result : kResults) {
    for (const char* mode : {"rn", "rz", "rna"}) {
      const bool away = std::string(mode) == "rna";
      for (const bool relu : {false, true}) {
        for (const bool finite : {false, true}) {
          if (away && (result.format != RefFormat::kTF32 || relu)) continue;
          const std::string text =
              absl::StrCat("cvt.", mode, relu ? ".relu" : "", finite ? ".satfinite." : ".",
                           result.name, ".f32", Operands(result.width, 'r'));
          count.Add(CheckOp(text, inputs, [&](const OpInputs& in) {
            double value = RefValue(RefFormat::kF32, in[0]);
            if (relu && value <= 0) value = 0.0;
            return OpOutputs{RefFromDouble(result.format, RefRoundingOf(mode), value, finite)};
          }));
        }
      }
    }
  }
}

TEST(ConvertTest, SourcesThatAreWider) {
  CaseCount count("cvt of wide registers");
  const auto inputs = IntegerInputs(3000);
  count.Add(CheckOp("cvt.f32.f16 %rx, %da", inputs, [](const OpInputs& in) {
    return OpOutputs{RefFromDouble(RefFormat::kF32, RefRounding::kNearest,
                                   RefValue(RefFormat::kF16, in[0] & 0xffff))};
  }));
  count.Add(CheckOp("cvt.rn.f16.f32 %dx, %da", inputs, [](const OpInputs& in) {
    return OpOutputs{RefFromDouble(RefFormat::kF16, RefRounding::kNearest,
                                   RefValue(RefFormat::kF32, in[0] & 0xffffffff))};
  }));
  count.Add(CheckOp("cvt.rzi.s8.f32 %dx, %ra", inputs, [](const OpInputs& in) {
    return OpOutputs{ToInteger(kIntegers[1], kFloats[2], RefRounding::kZero, in[0] & 0xffffffff)};
  }));
  EXPECT_EQ(DecodeOnly("cvt.u32.u64 %hx, %da").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DecodeOnly("cvt.u64.u32 %dx, %ha").code(), absl::StatusCode::kInvalidArgument);
}

TEST(ConvertTest, RefusesFormsThatDoNotExist) {
  for (const char* text :
       {"cvt.s32.f32 %rx, %ra", "cvt.f32.s32 %rx, %ra", "cvt.f16.f32 %hx, %ra",
        "cvt.rn.s32.f32 %rx, %ra", "cvt.rs.f16.f32 %hx, %ra", "cvt.rna.f16.f32 %hx, %ra",
        "cvt.rna.relu.tf32.f32 %rx, %ra", "cvt.rm.tf32.f32 %rx, %ra", "cvt.rn.tf32.f64 %rx, %da",
        "cvt.rn.relu.f32.f64 %rx, %da", "cvt.ftz.u32.u64 %rx, %da", "cvt.rni.f32.f16 %rx, %ha",
        "cvt.rn.ftz.f16.f64 %hx, %da", "cvt.rn.satfinite.f16.s32 %hx, %ra", "cvt.u32 %rx, %ra",
        "cvt.b32.u32 %rx, %ra", "cvt.rn.rz.f16.f32 %hx, %ra"}) {
    EXPECT_EQ(DecodeOnly(text).code(), absl::StatusCode::kUnimplemented) << text;
  }
}

}  // namespace
}  // namespace assay::emulator
