// f32 and f64 arithmetic against MPFR: every operation and rounding, with .ftz and .sat.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "emulator/testing/float_reference.h"
#include "emulator/testing/op_fixture.h"
#include "emulator/testing/op_inputs.h"

namespace assay::emulator {
namespace {

constexpr uint64_t kSeed = 20240611;

struct Operation {
  const char* mnemonic;
  RefOperation operation;
  int sources;
  bool default_rounding;
  bool may_saturate;
};
constexpr Operation kOperations[] = {
    {"add", RefOperation::kAdd, 2, true, true},
    {"sub", RefOperation::kSubtract, 2, true, true},
    {"mul", RefOperation::kMultiply, 2, true, true},
    {"fma", RefOperation::kFma, 3, false, true},
    {"mad", RefOperation::kFma, 3, false, true},
    {"div", RefOperation::kDivide, 2, false, false},
    {"rcp", RefOperation::kReciprocal, 1, false, false},
    {"sqrt", RefOperation::kSquareRoot, 1, false, false},
};

std::string Operands(int sources, char width) {
  std::string text;
  for (int i = -1; i < sources; ++i) {
    absl::StrAppend(&text, i < 0 ? " %" : ", %", std::string(1, width),
                    std::string(1, i < 0 ? 'x' : static_cast<char>('a' + i)));
  }
  return text;
}

std::vector<OpInputs> InputsFor(ValueKind kind, int sources, uint64_t seed) {
  const std::vector<ValueKind> kinds(static_cast<size_t>(sources), kind);
  return MakeInputs(kinds, sources == 3 ? 30000 : 24000, 12000, seed);
}

TEST(FloatTest, F32AgreesWithMpfr) {
  CaseCount count("f32 arithmetic");
  for (const Operation& operation : kOperations) {
    const std::vector<OpInputs> inputs = InputsFor(ValueKind::kF32, operation.sources, kSeed);
    for (const char* rounding : {"", ".rn", ".rz", ".rm", ".rp"}) {
      if (rounding[0] == '\0' && !operation.default_rounding) continue;
      for (const bool flush : {false, true}) {
        for (const bool saturate : {false, true}) {
          if (saturate && !operation.may_saturate) continue;
          const std::string text =
              absl::StrCat(operation.mnemonic, rounding, flush ? ".ftz" : "",
                           saturate ? ".sat" : "", ".f32", Operands(operation.sources, 'r'));
          const RefRounding mode =
              rounding[0] == '\0' ? RefRounding::kNearest : RefRoundingOf(rounding + 1);
          count.Add(CheckOp(text, inputs, [&](const OpInputs& in) {
            uint64_t operands[3];
            for (int i = 0; i < 3; ++i) {
              operands[i] = flush ? RefFlush(RefFormat::kF32, in[i]) : in[i];
            }
            uint64_t bits = RefArithmetic(RefFormat::kF32, operation.operation, mode, operands[0],
                                          operands[1], operands[2]);
            if (saturate) bits = RefSaturate(RefFormat::kF32, bits);
            return OpOutputs{flush ? RefFlush(RefFormat::kF32, bits) : bits};
          }));
        }
      }
    }
  }
}

TEST(FloatTest, F64AgreesWithMpfr) {
  CaseCount count("f64 arithmetic");
  for (const Operation& operation : kOperations) {
    const std::vector<OpInputs> inputs = InputsFor(ValueKind::kF64, operation.sources, kSeed + 1);
    for (const char* rounding : {"", ".rn", ".rz", ".rm", ".rp"}) {
      if (rounding[0] == '\0' && !operation.default_rounding) continue;
      const std::string text =
          absl::StrCat(operation.mnemonic, rounding, ".f64", Operands(operation.sources, 'd'));
      const RefRounding mode =
          rounding[0] == '\0' ? RefRounding::kNearest : RefRoundingOf(rounding + 1);
      count.Add(CheckOp(text, inputs, [&](const OpInputs& in) {
        return OpOutputs{
            RefArithmetic(RefFormat::kF64, operation.operation, mode, in[0], in[1], in[2])};
      }));
    }
  }
}

// The rounding mode of the processor is put back.
TEST(FloatTest, DirectedRoundingLeavesNoTrace) {
  OpFixture fixture;
  ASSERT_TRUE(fixture.Decode("div.rp.f32 %rx, %ra, %rb").ok());
  fixture.Run(kAllLanes);
  volatile float one = 1.0f;
  volatile float three = 3.0f;
  EXPECT_EQ(one / three, 0x1.555556p-2f);
}

uint64_t ReferenceSign(bool negate, bool flush, uint64_t bits) {
  if (RefIsNan(RefFormat::kF32, bits)) return RefNan(RefFormat::kF32);
  if (flush) bits = RefFlush(RefFormat::kF32, bits);
  const double value = RefValue(RefFormat::kF32, bits);
  return RefEncode(RefFormat::kF32, negate ? -value : std::abs(value));
}

TEST(FloatTest, SignOperations) {
  CaseCount count("f32 and f64 sign operations");
  const auto singles = MakeInputs({ValueKind::kF32, ValueKind::kF32}, 40000, 4000, kSeed);
  const auto doubles = MakeInputs({ValueKind::kF64, ValueKind::kF64}, 40000, 4000, kSeed);
  for (const bool negate : {false, true}) {
    const std::string mnemonic = negate ? "neg" : "abs";
    for (const bool flush : {false, true}) {
      count.Add(CheckOp(
          mnemonic + (flush ? ".ftz" : "") + ".f32 %rx, %ra", singles,
          [&](const OpInputs& in) { return OpOutputs{ReferenceSign(negate, flush, in[0])}; }));
    }
    count.Add(CheckOp(mnemonic + ".f64 %dx, %da", doubles, [&](const OpInputs& in) {
      const uint64_t sign = uint64_t{1} << 63;
      if (negate) return OpOutputs{in[0] ^ sign};
      return OpOutputs{RefIsNan(RefFormat::kF64, in[0]) ? in[0] : in[0] & ~sign};
    }));
  }
  count.Add(CheckOp("copysign.f32 %rx, %ra, %rb", singles, [](const OpInputs& in) {
    return OpOutputs{(in[0] >> 31 << 31) + (in[1] & 0x7fffffff)};
  }));
  count.Add(CheckOp("copysign.f64 %dx, %da, %db", doubles, [](const OpInputs& in) {
    return OpOutputs{(in[0] >> 63 << 63) + (in[1] << 1 >> 1)};
  }));
}

TEST(FloatTest, TestsOfClasses) {
  CaseCount count("testp");
  struct {
    const char* name;
    bool (*holds)(double);
  } kTests[] = {
      {"finite", [](double v) { return std::isfinite(v); }},
      {"infinite", [](double v) { return std::isinf(v); }},
      {"number", [](double v) { return !std::isnan(v); }},
      {"notanumber", [](double v) { return std::isnan(v); }},
      {"normal", [](double v) { return std::isnormal(v) || v == 0; }},
      {"subnormal", [](double v) { return std::fpclassify(v) == FP_SUBNORMAL; }},
  };
  const auto singles = MakeInputs({ValueKind::kF32}, 1000, 4000, kSeed);
  const auto doubles = MakeInputs({ValueKind::kF64}, 1000, 4000, kSeed);
  for (const auto& test : kTests) {
    count.Add(CheckOp(absl::StrCat("testp.", test.name, ".f64 %px, %da"), doubles,
                      [&](const OpInputs& in) {
                        return OpOutputs{test.holds(RefValue(RefFormat::kF64, in[0]))};
                      }));
    count.Add(CheckOp(
        absl::StrCat("testp.", test.name, ".f32 %px, %ra"), singles, [&](const OpInputs& in) {
          // A subnormal float is a normal double: as far from the least one.
          const bool tiny = RefIsSubnormal(RefFormat::kF32, in[0]);
          return OpOutputs{test.holds(tiny ? 0x1p-1060 : RefValue(RefFormat::kF32, in[0]))};
        }));
  }
}

// min and max by the rules as PTX writes them down, on values.
struct Extreme {
  bool max;
  bool nan;
  uint64_t Two(RefFormat format, uint64_t a, uint64_t b) const {
    const bool nan_a = RefIsNan(format, a);
    const bool nan_b = RefIsNan(format, b);
    if ((nan_a && nan_b) || (nan && (nan_a || nan_b))) {
      return format == RefFormat::kF64 ? a | uint64_t{1} << 51 : RefNan(format);
    }
    if (nan_a) return b;
    if (nan_b) return a;
    const double left = RefValue(format, a);
    const double right = RefValue(format, b);
    const bool less = left < right || (left == right && std::signbit(left) && !std::signbit(right));
    return less == max ? b : a;
  }
};

TEST(FloatTest, MinAndMax) {
  CaseCount count("f32 and f64 min and max");
  const uint64_t sign = 0x80000000;
  const auto pairs = MakeInputs({ValueKind::kF32, ValueKind::kF32}, 40000, 8000, kSeed);
  const auto triples =
      MakeInputs({ValueKind::kF32, ValueKind::kF32, ValueKind::kF32}, 60000, 8000, kSeed);
  const auto doubles = MakeInputs({ValueKind::kF64, ValueKind::kF64}, 60000, 8000, kSeed);
  for (const bool max : {false, true}) {
    for (const bool nan : {false, true}) {
      const Extreme extreme{max, nan};
      for (const bool flush : {false, true}) {
        const auto ready = [flush](uint64_t bits) {
          return flush ? RefFlush(RefFormat::kF32, bits) : bits;
        };
        const std::string start =
            absl::StrCat(max ? "max" : "min", flush ? ".ftz" : "", nan ? ".NaN" : "");
        count.Add(CheckOp(start + ".f32 %rx, %ra, %rb", pairs, [&](const OpInputs& in) {
          return OpOutputs{extreme.Two(RefFormat::kF32, ready(in[0]), ready(in[1]))};
        }));
        count.Add(CheckOp(start + ".xorsign.abs.f32 %rx, %ra, %rb", pairs, [&](const OpInputs& in) {
          const uint64_t result =
              extreme.Two(RefFormat::kF32, ready(in[0]) & ~sign, ready(in[1]) & ~sign);
          if (RefIsNan(RefFormat::kF32, result)) return OpOutputs{result};
          return OpOutputs{(result & ~sign) | ((in[0] ^ in[1]) & sign)};
        }));
        for (const bool absolute : {false, true}) {
          const uint64_t kept = absolute ? ~sign : ~uint64_t{0};
          count.Add(
              CheckOp(start + (absolute ? ".abs" : "") + ".f32 %rx, %ra, %rb, %rc", triples,
                      [&](const OpInputs& in) {
                        const uint64_t first =
                            extreme.Two(RefFormat::kF32, ready(in[0]) & kept, ready(in[1]) & kept);
                        return OpOutputs{extreme.Two(RefFormat::kF32, first, ready(in[2]) & kept)};
                      }));
        }
      }
    }
    const Extreme extreme{max, false};
    count.Add(CheckOp(
        std::string(max ? "max" : "min") + ".f64 %dx, %da, %db", doubles,
        [&](const OpInputs& in) { return OpOutputs{extreme.Two(RefFormat::kF64, in[0], in[1])}; }));
  }
}

TEST(FloatTest, CountsOperations) {
  OpFixture fixture;
  ASSERT_TRUE(fixture.Decode("fma.rn.f32 %rx, %ra, %rb, %rc").ok());
  EXPECT_EQ(fixture.info().flops, 2);
  EXPECT_EQ(fixture.info().op_class, OpClass::kF32);
  ASSERT_TRUE(fixture.Decode("add.f64 %dx, %da, %db").ok());
  EXPECT_EQ(fixture.info().flops, 1);
  EXPECT_EQ(fixture.info().op_class, OpClass::kF64);
}

TEST(FloatTest, RefusesFormsThatDoNotExist) {
  for (const char* text :
       {"fma.f32 %rx, %ra, %rb, %rc", "div.f32 %rx, %ra, %rb", "rcp.f32 %rx, %ra",
        "add.ftz.f64 %dx, %da, %db", "add.sat.f64 %dx, %da, %db", "div.rn.sat.f32 %rx, %ra, %rb",
        "add.rna.f32 %rx, %ra, %rb", "min.NaN.f64 %dx, %da, %db", "min.abs.f32 %rx, %ra, %rb",
        "min.xorsign.f32 %rx, %ra, %rb", "abs.sat.f32 %rx, %ra", "testp.odd.f32 %px, %ra",
        "add.rn.f32x2 %dx, %da, %db", "add.rn.f32.f16 %rx, %ha, %rb"}) {
    EXPECT_EQ(DecodeOnly(text).code(), absl::StatusCode::kUnimplemented) << text;
  }
  EXPECT_EQ(DecodeOnly("add.f32 %rx, %ra").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DecodeOnly("add.f32 %rx, %da, %rb").code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace assay::emulator
