// f16 and bf16 arithmetic against MPFR. What has one operand is tested for every value.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "emulator/testing/float_reference.h"
#include "emulator/testing/op_fixture.h"
#include "emulator/testing/op_inputs.h"

namespace assay::emulator {
namespace {

constexpr uint64_t kSeed = 4711;

struct HalfType {
  const char* name;
  RefFormat format;
  ValueKind kind;
  ValueKind pair_kind;
  bool may_flush;  // and saturate
};
constexpr HalfType kTypes[] = {
    {"f16", RefFormat::kF16, ValueKind::kF16, ValueKind::kF16x2, true},
    {"bf16", RefFormat::kBF16, ValueKind::kBF16, ValueKind::kBF16x2, false},
};

using HalfReference = std::function<uint64_t(uint64_t a, uint64_t b, uint64_t c)>;

// Applies a reference to one half or to both.
OpReference Spread(bool packed, const HalfReference& reference) {
  return [packed, reference](const OpInputs& in) {
    const uint64_t low = reference(in[0] & 0xffff, in[1] & 0xffff, in[2] & 0xffff);
    if (!packed) return OpOutputs{low};
    const uint64_t high =
        reference(in[0] >> 16 & 0xffff, in[1] >> 16 & 0xffff, in[2] >> 16 & 0xffff);
    return OpOutputs{low | high << 16};
  };
}

std::string Registers(bool packed, int sources) {
  const std::string width = packed ? "r" : "h";
  std::string text = absl::StrCat(" %", width, "x");
  for (int i = 0; i < sources; ++i) {
    absl::StrAppend(&text, ", %", width, std::string(1, static_cast<char>('a' + i)));
  }
  return text;
}

// Special values, random ones, and every value beside a few.
std::vector<OpInputs> Inputs(const HalfType& type, bool packed, int sources) {
  const std::vector<ValueKind> kinds(static_cast<size_t>(sources),
                                     packed ? type.pair_kind : type.kind);
  return MakeInputs(kinds, 30000, 20000, kSeed);
}

std::vector<OpInputs> EveryValueBesideFew(const HalfType& type) {
  std::vector<OpInputs> inputs;
  const std::vector<uint64_t> special = SpecialValues(type.kind);
  for (uint64_t a = 0; a < 0x10000; ++a) {
    for (size_t i = 0; i < 4; ++i) {
      inputs.push_back({a, special[(a * 7 + i * 31) % special.size()],
                        special[(a * 3 + i * 17) % special.size()]});
    }
  }
  return inputs;
}

TEST(HalfTest, ArithmeticAgreesWithMpfr) {
  CaseCount count("f16 and bf16 arithmetic");
  struct {
    const char* mnemonic;
    RefOperation operation;
    int sources;
  } kOperations[] = {{"add", RefOperation::kAdd, 2},
                     {"sub", RefOperation::kSubtract, 2},
                     {"mul", RefOperation::kMultiply, 2},
                     {"fma", RefOperation::kFma, 3}};
  for (const HalfType& type : kTypes) {
    for (const auto& operation : kOperations) {
      for (const bool packed : {false, true}) {
        const auto inputs = Inputs(type, packed, operation.sources);
        for (const char* limit : {"", ".sat", ".relu"}) {
          const bool relu = std::string(limit) == ".relu";
          const bool saturate = std::string(limit) == ".sat";
          if (relu && operation.sources != 3) continue;
          if (saturate && !type.may_flush) continue;
          for (const bool flush : {false, true}) {
            if (flush && !type.may_flush) continue;
            const bool explicit_rounding = operation.sources == 3 || !flush;
            const std::string text = absl::StrCat(
                operation.mnemonic, explicit_rounding ? ".rn" : "", flush ? ".ftz" : "", limit, ".",
                type.name, packed ? "x2" : "", Registers(packed, operation.sources));
            const auto reference = [&](uint64_t a, uint64_t b, uint64_t c) {
              const auto ready = [&](uint64_t bits) {
                return flush ? RefFlush(type.format, bits) : bits;
              };
              uint64_t bits = RefArithmetic(type.format, operation.operation, RefRounding::kNearest,
                                            ready(a), ready(b), ready(c));
              if (saturate) bits = RefSaturate(type.format, bits);
              if (relu) bits = RefRelu(type.format, bits);
              return ready(bits);
            };
            count.Add(CheckOp(text, inputs, Spread(packed, reference)));
          }
        }
      }
    }
  }
}

TEST(HalfTest, EveryOperandBesideFewOthers) {
  CaseCount count("f16 and bf16, every operand");
  for (const HalfType& type : kTypes) {
    const auto inputs = EveryValueBesideFew(type);
    const auto check = [&](const char* mnemonic, RefOperation operation, int sources) {
      const auto reference = [&](uint64_t a, uint64_t b, uint64_t c) {
        return RefArithmetic(type.format, operation, RefRounding::kNearest, a, b, c);
      };
      count.Add(CheckOp(absl::StrCat(mnemonic, ".rn.", type.name, Registers(false, sources)),
                        inputs, Spread(false, reference)));
    };
    check("add", RefOperation::kAdd, 2);
    check("mul", RefOperation::kMultiply, 2);
    check("fma", RefOperation::kFma, 3);
  }
}

// Products on a tie with an addend far below what double holds beside them.
TEST(HalfTest, FusedSumsBeyondDouble) {
  CaseCount count("bf16 fma beyond double");
  std::vector<OpInputs> inputs;
  const uint64_t factors[][2] = {{0x3f81, 0x3f81}, {0x4081, 0x3fc0}, {0x3f83, 0x4140},
                                 {0x5f88, 0x5f81}, {0x2081, 0x1f90}, {0x0081, 0x3f40}};
  for (const auto& pair : factors) {
    for (uint64_t exponent = 0; exponent < 255; ++exponent) {
      for (const uint64_t fraction : {0, 1, 0x7f}) {
        for (const uint64_t sign : {uint64_t{0}, uint64_t{0x8000}}) {
          inputs.push_back({pair[0], pair[1], sign | exponent << 7 | fraction});
          inputs.push_back({pair[0] ^ 0x8000, pair[1], sign | exponent << 7 | fraction});
        }
      }
    }
  }
  count.Add(CheckOp("fma.rn.bf16 %hx, %ha, %hb, %hc", inputs, [](const OpInputs& in) {
    return OpOutputs{RefArithmetic(RefFormat::kBF16, RefOperation::kFma, RefRounding::kNearest,
                                   in[0], in[1], in[2])};
  }));
}

TEST(HalfTest, SignsOfEveryValue) {
  CaseCount count("f16 and bf16 neg abs");
  std::vector<OpInputs> inputs;
  for (uint64_t bits = 0; bits < 0x10000; ++bits) inputs.push_back({bits << 16 | (bits ^ 0x5555)});
  for (const HalfType& type : kTypes) {
    for (const bool negate : {false, true}) {
      for (const bool packed : {false, true}) {
        for (const bool flush : {false, true}) {
          if (flush && !type.may_flush) continue;
          const auto reference = [&](uint64_t a, uint64_t, uint64_t) {
            if (RefIsNan(type.format, a)) return RefNan(type.format);
            const uint64_t bits = flush ? RefFlush(type.format, a) : a;
            return negate ? bits ^ 0x8000 : bits & 0x7fff;
          };
          count.Add(CheckOp(absl::StrCat(negate ? "neg" : "abs", flush ? ".ftz." : ".", type.name,
                                         packed ? "x2" : "", Registers(packed, 1)),
                            inputs, Spread(packed, reference)));
        }
      }
    }
  }
}

TEST(HalfTest, MinAndMax) {
  CaseCount count("f16 and bf16 min max");
  for (const HalfType& type : kTypes) {
    for (const bool packed : {false, true}) {
      const auto inputs = Inputs(type, packed, 2);
      for (int form = 0; form < 16; ++form) {
        const bool max = (form & 1) != 0;
        const bool nan = (form & 2) != 0;
        const bool xor_sign = (form & 4) != 0;
        const bool flush = (form & 8) != 0;
        if (flush && !type.may_flush) continue;
        const auto reference = [&](uint64_t a, uint64_t b, uint64_t) {
          const uint64_t sign = (a ^ b) & 0x8000;
          if (flush) a = RefFlush(type.format, a);
          if (flush) b = RefFlush(type.format, b);
          if (xor_sign) a &= 0x7fff;
          if (xor_sign) b &= 0x7fff;
          const bool nan_a = RefIsNan(type.format, a);
          const bool nan_b = RefIsNan(type.format, b);
          if ((nan_a && nan_b) || (nan && (nan_a || nan_b))) return RefNan(type.format);
          const double left = RefValue(type.format, a);
          const double right = RefValue(type.format, b);
          const bool less =
              left < right || (left == right && std::signbit(left) && !std::signbit(right));
          const uint64_t result = nan_a ? b : (nan_b ? a : (less == max ? b : a));
          return xor_sign ? (result & 0x7fff) | sign : result;
        };
        count.Add(CheckOp(absl::StrCat(max ? "max" : "min", flush ? ".ftz" : "", nan ? ".NaN" : "",
                                       xor_sign ? ".xorsign.abs." : ".", type.name,
                                       packed ? "x2" : "", Registers(packed, 2)),
                          inputs, Spread(packed, reference)));
      }
    }
  }
}

TEST(HalfTest, CountsOperations) {
  OpFixture fixture;
  ASSERT_TRUE(fixture.Decode("fma.rn.f16x2 %rx, %ra, %rb, %rc").ok());
  EXPECT_EQ(fixture.info().op_class, OpClass::kF16);
  EXPECT_EQ(fixture.info().flops, 4);
  ASSERT_TRUE(fixture.Decode("add.bf16 %hx, %ha, %hb").ok());
  EXPECT_EQ(fixture.info().flops, 1);
}

TEST(HalfTest, RefusesFormsThatDoNotExist) {
  for (const char* text :
       {"add.rz.f16 %hx, %ha, %hb", "add.ftz.bf16 %hx, %ha, %hb", "add.sat.bf16 %hx, %ha, %hb",
        "fma.f16 %hx, %ha, %hb, %hc", "fma.rn.oob.f16 %hx, %ha, %hb, %hc",
        "add.relu.f16 %hx, %ha, %hb", "min.xorsign.f16 %hx, %ha, %hb", "neg.sat.f16 %hx, %ha",
        "div.rn.f16 %hx, %ha, %hb", "neg.ftz.bf16 %hx, %ha"}) {
    EXPECT_EQ(DecodeOnly(text).code(), absl::StatusCode::kUnimplemented) << text;
  }
  EXPECT_EQ(DecodeOnly("add.f16x2 %hx, %ha, %hb").code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace assay::emulator
