// Comparisons, selection and logic on predicates against a table of what each operator means.
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

constexpr uint64_t kSeed = 77;

struct CompareType {
  const char* name;
  char width;
  ValueKind kind;
  int bits;
  char sort;  // b: bits, u, s; f: floating point
  RefFormat format = RefFormat::kF32;
};
constexpr CompareType kTypes[] = {
    {"b16", 'h', ValueKind::kBits16, 16, 'b'},
    {"b32", 'r', ValueKind::kBits32, 32, 'b'},
    {"b64", 'd', ValueKind::kBits64, 64, 'b'},
    {"u16", 'h', ValueKind::kBits16, 16, 'u'},
    {"u32", 'r', ValueKind::kBits32, 32, 'u'},
    {"u64", 'd', ValueKind::kBits64, 64, 'u'},
    {"s16", 'h', ValueKind::kBits16, 16, 's'},
    {"s32", 'r', ValueKind::kBits32, 32, 's'},
    {"s64", 'd', ValueKind::kBits64, 64, 's'},
    {"f32", 'r', ValueKind::kF32, 32, 'f', RefFormat::kF32},
    {"f64", 'd', ValueKind::kF64, 64, 'f', RefFormat::kF64},
    {"f16", 'h', ValueKind::kF16, 16, 'f', RefFormat::kF16},
    {"bf16", 'h', ValueKind::kBF16, 16, 'f', RefFormat::kBF16},
};

// -1, 0 or 1; 2 when they are not ordered.
int Order(const CompareType& type, uint64_t a, uint64_t b, bool flush) {
  if (type.sort == 'f') {
    if (RefIsNan(type.format, a) || RefIsNan(type.format, b)) return 2;
    const double left = RefValue(type.format, flush ? RefFlush(type.format, a) : a);
    const double right = RefValue(type.format, flush ? RefFlush(type.format, b) : b);
    return left < right ? -1 : (left > right ? 1 : 0);
  }
  const auto value = [&](uint64_t raw) {
    const uint64_t low = type.bits == 64 ? raw : raw & ((uint64_t{1} << type.bits) - 1);
    const bool negative = type.sort == 's' && (low >> (type.bits - 1)) != 0;
    return negative ? static_cast<__int128>(low) - (static_cast<__int128>(1) << type.bits)
                    : static_cast<__int128>(low);
  };
  return value(a) < value(b) ? -1 : (value(a) > value(b) ? 1 : 0);
}

struct Operator {
  const char* name;
  const char* sorts;  // of types that have it
  bool (*holds)(int order);
};
constexpr Operator kOperators[] = {
    {"eq", "busf", [](int o) { return o == 0; }},
    {"ne", "busf", [](int o) { return o == -1 || o == 1; }},
    {"lt", "usf", [](int o) { return o == -1; }},
    {"le", "usf", [](int o) { return o == -1 || o == 0; }},
    {"gt", "usf", [](int o) { return o == 1; }},
    {"ge", "usf", [](int o) { return o == 1 || o == 0; }},
    {"lo", "u", [](int o) { return o == -1; }},
    {"ls", "u", [](int o) { return o == -1 || o == 0; }},
    {"hi", "u", [](int o) { return o == 1; }},
    {"hs", "u", [](int o) { return o == 1 || o == 0; }},
    {"equ", "f", [](int o) { return o == 0 || o == 2; }},
    {"neu", "f", [](int o) { return o != 0; }},
    {"ltu", "f", [](int o) { return o == -1 || o == 2; }},
    {"leu", "f", [](int o) { return o != 1; }},
    {"gtu", "f", [](int o) { return o == 1 || o == 2; }},
    {"geu", "f", [](int o) { return o != -1; }},
    {"num", "f", [](int o) { return o != 2; }},
    {"nan", "f", [](int o) { return o == 2; }},
};

bool Has(const Operator& compare, const CompareType& type) {
  return std::string(compare.sorts).find(type.sort) != std::string::npos;
}

struct BooleanOperator {
  const char* name;
  bool (*apply)(bool, bool);
};
constexpr BooleanOperator kBooleans[] = {
    {"", [](bool t, bool) { return t; }},
    {".and", [](bool t, bool c) { return t && c; }},
    {".or", [](bool t, bool c) { return t || c; }},
    {".xor", [](bool t, bool c) { return t != c; }},
};

std::string Two(const CompareType& type) {
  return absl::StrCat("%", std::string(1, type.width), "a, %", std::string(1, type.width), "b");
}

// Whether .ftz goes with the type.
bool MayFlush(const CompareType& type) {
  return type.sort == 'f' && (type.format == RefFormat::kF32 || type.format == RefFormat::kF16);
}

TEST(CompareTest, SetPredicate) {
  CaseCount count("setp");
  for (const CompareType& type : kTypes) {
    const auto inputs =
        MakeInputs({type.kind, type.kind, ValueKind::kPredicate}, 4000, 2000, kSeed);
    const bool half = type.format == RefFormat::kF16 || type.format == RefFormat::kBF16;
    for (const Operator& compare : kOperators) {
      if (!Has(compare, type)) continue;
      for (const BooleanOperator& boolean : kBooleans) {
        for (const bool flush : {false, true}) {
          if (flush && !MayFlush(type)) continue;
          const bool negated = flush || boolean.name[1] == 'o';
          const std::string other = boolean.name[0] == '\0' ? "" : (negated ? ", !%pc" : ", %pc");
          const std::string text =
              absl::StrCat("setp.", compare.name, boolean.name, flush ? ".ftz." : ".", type.name,
                           " %px", half ? "" : "|%py", ", ", Two(type), other);
          count.Add(CheckOp(text, inputs, [&](const OpInputs& in) {
            const bool t = compare.holds(Order(type, in[0], in[1], flush));
            const bool c = ((in[2] & 1) != 0) != negated;
            return OpOutputs{boolean.apply(t, c), boolean.apply(!t, c)};
          }));
        }
      }
    }
  }
}

TEST(CompareTest, SetPredicateOfPairs) {
  CaseCount count("setp x2");
  for (const bool bfloat : {false, true}) {
    const CompareType& half = kTypes[bfloat ? 12 : 11];
    const auto inputs =
        MakeInputs({bfloat ? ValueKind::kBF16x2 : ValueKind::kF16x2,
                    bfloat ? ValueKind::kBF16x2 : ValueKind::kF16x2, ValueKind::kPredicate},
                   12000, 4000, kSeed);
    for (const Operator& compare : kOperators) {
      if (!Has(compare, half)) continue;
      for (const bool flush : {false, true}) {
        if (flush && bfloat) continue;
        const std::string text =
            absl::StrCat("setp.", compare.name, ".and", flush ? ".ftz" : "",
                         bfloat ? ".bf16x2" : ".f16x2", " %px|%py, %ra, %rb, %pc");
        count.Add(CheckOp(text, inputs, [&](const OpInputs& in) {
          const bool c = (in[2] & 1) != 0;
          const bool low = compare.holds(Order(half, in[0] & 0xffff, in[1] & 0xffff, flush));
          const bool high =
              compare.holds(Order(half, in[0] >> 16 & 0xffff, in[1] >> 16 & 0xffff, flush));
          return OpOutputs{low && c, high && c};
        }));
      }
    }
  }
}

TEST(CompareTest, Set) {
  CaseCount count("set");
  struct {
    const char* name;
    char width;
    uint64_t truth;
    bool only_half;
  } kResults[] = {{"u32", 'r', 0xffffffff, false}, {"s32", 'r', 0xffffffff, false},
                  {"f32", 'r', 0x3f800000, false}, {"u16", 'h', 0xffff, true},
                  {"s16", 'h', 0xffff, true},      {"f16", 'h', 0x3c00, false},
                  {"bf16", 'h', 0x3f80, false}};
  for (const CompareType& type : kTypes) {
    const auto inputs =
        MakeInputs({type.kind, type.kind, ValueKind::kPredicate}, 4000, 2000, kSeed);
    for (const Operator& compare : kOperators) {
      if (!Has(compare, type)) continue;
      for (const auto& result : kResults) {
        const bool half = type.sort == 'f' && type.width == 'h';
        if (result.only_half && !half) continue;
        const bool flush = MayFlush(type) && result.width == 'r';
        const std::string text =
            absl::StrCat("set.", compare.name, ".or", flush ? ".ftz." : ".", result.name, ".",
                         type.name, " %", std::string(1, result.width), "x, ", Two(type), ", !%pc");
        count.Add(CheckOp(text, inputs, [&](const OpInputs& in) {
          const bool t = compare.holds(Order(type, in[0], in[1], flush)) || (in[2] & 1) == 0;
          return OpOutputs{t ? result.truth : 0};
        }));
      }
    }
  }
}

TEST(CompareTest, SetOfPairs) {
  CaseCount count("set x2");
  struct {
    const char* result;
    const char* source;
    int type;
    uint64_t truth;
  } kForms[] = {{"f16x2", "f16x2", 11, 0x3c00},
                {"u32", "f16x2", 11, 0xffff},
                {"bf16x2", "bf16x2", 12, 0x3f80},
                {"s32", "bf16x2", 12, 0xffff}};
  for (const auto& form : kForms) {
    const CompareType& half = kTypes[form.type];
    const ValueKind kind = form.type == 11 ? ValueKind::kF16x2 : ValueKind::kBF16x2;
    const auto inputs = MakeInputs({kind, kind}, 6000, 2000, kSeed);
    for (const Operator& compare : kOperators) {
      if (!Has(compare, half)) continue;
      count.Add(CheckOp(
          absl::StrCat("set.", compare.name, ".", form.result, ".", form.source, " %rx, %ra, %rb"),
          inputs, [&](const OpInputs& in) {
            const bool low = compare.holds(Order(half, in[0] & 0xffff, in[1] & 0xffff, false));
            const bool high =
                compare.holds(Order(half, in[0] >> 16 & 0xffff, in[1] >> 16 & 0xffff, false));
            return OpOutputs{(low ? form.truth : 0) + (high ? form.truth << 16 : 0)};
          }));
    }
  }
}

TEST(CompareTest, Selection) {
  CaseCount count("selp slct");
  struct {
    const char* name;
    char width;
    ValueKind kind;
  } kForms[] = {{"b16", 'h', ValueKind::kBits16},
                {"u32", 'r', ValueKind::kBits32},
                {"f32", 'r', ValueKind::kF32},
                {"s64", 'd', ValueKind::kBits64},
                {"f64", 'd', ValueKind::kF64}};
  for (const auto& form : kForms) {
    const std::string w(1, form.width);
    const std::string registers = absl::StrCat(" %", w, "x, %", w, "a, %", w, "b, ");
    const auto inputs =
        MakeInputs({form.kind, form.kind, ValueKind::kPredicate}, 2000, 2000, kSeed);
    count.Add(CheckOp(absl::StrCat("selp.", form.name, registers, "%pc"), inputs,
                      [](const OpInputs& in) { return OpOutputs{in[2] & 1 ? in[0] : in[1]}; }));
    count.Add(CheckOp(absl::StrCat("selp.", form.name, registers, "!%pc"), inputs,
                      [](const OpInputs& in) { return OpOutputs{in[2] & 1 ? in[1] : in[0]}; }));
    const auto integers = MakeInputs({form.kind, form.kind, ValueKind::kBits32}, 2000, 2000, kSeed);
    count.Add(CheckOp(
        absl::StrCat("slct.", form.name, ".s32", registers, "%rc"), integers,
        [](const OpInputs& in) { return OpOutputs{(in[2] >> 31 & 1) == 0 ? in[0] : in[1]}; }));
    const auto floats = MakeInputs({form.kind, form.kind, ValueKind::kF32}, 4000, 2000, kSeed);
    for (const bool flush : {false, true}) {
      count.Add(CheckOp(
          absl::StrCat("slct", flush ? ".ftz" : "", ".", form.name, ".f32", registers, "%rc"),
          floats, [&](const OpInputs& in) {
            const uint64_t c =
                flush ? RefFlush(RefFormat::kF32, in[2] & 0xffffffff) : in[2] & 0xffffffff;
            return OpOutputs{RefValue(RefFormat::kF32, c) >= 0 ? in[0] : in[1]};
          }));
    }
  }
}

TEST(CompareTest, PredicateLogic) {
  CaseCount count("logic on predicates");
  const auto inputs = MakeInputs({ValueKind::kPredicate, ValueKind::kPredicate}, 100, 2000, kSeed);
  for (const BooleanOperator& boolean : kBooleans) {
    if (boolean.name[0] == '\0') continue;
    count.Add(CheckOp(absl::StrCat(boolean.name + 1, ".pred %px, %pa, %pb"), inputs,
                      [&](const OpInputs& in) {
                        return OpOutputs{boolean.apply((in[0] & 1) != 0, (in[1] & 1) != 0)};
                      }));
    count.Add(CheckOp(absl::StrCat(boolean.name + 1, ".pred %px, !%pa, %pb"), inputs,
                      [&](const OpInputs& in) {
                        return OpOutputs{boolean.apply((in[0] & 1) == 0, (in[1] & 1) != 0)};
                      }));
  }
  count.Add(CheckOp("not.pred %px, %pa", inputs,
                    [](const OpInputs& in) { return OpOutputs{(in[0] & 1) ^ 1}; }));
  count.Add(CheckOp("mov.pred %px, %pa", inputs,
                    [](const OpInputs& in) { return OpOutputs{in[0] & 1}; }));
}

// A destination may be the predicate that is combined, and either may be a sink.
TEST(CompareTest, DestinationsThatAreSources) {
  OpFixture fixture;
  ASSERT_TRUE(fixture.Decode("setp.lt.and.u32 %pc|%py, %ra, %rb, %pc").ok());
  for (int lane = 0; lane < kLanes; ++lane) {
    fixture.Set("%ra", lane, static_cast<uint64_t>(lane));
    fixture.Set("%rb", lane, 16);
    fixture.Set("%pc", lane, lane % 2 == 0);
  }
  fixture.Run(kAllLanes);
  for (int lane = 0; lane < kLanes; ++lane) {
    EXPECT_EQ(fixture.Get("%pc", lane), lane < 16 && lane % 2 == 0 ? 1u : 0u) << lane;
    EXPECT_EQ(fixture.Get("%py", lane), lane >= 16 && lane % 2 == 0 ? 1u : 0u) << lane;
  }
  EXPECT_TRUE(DecodeOnly("setp.lt.u32 _|%py, %ra, %rb").ok());
}

TEST(CompareTest, RefusesFormsThatDoNotExist) {
  for (const char* text :
       {"setp.lt.b32 %px, %ra, %rb", "setp.lo.s32 %px, %ra, %rb", "setp.ltu.u32 %px, %ra, %rb",
        "setp.lt.nand.u32 %px, %ra, %rb, %pc", "setp.lt.u8 %px, %ha, %hb",
        "set.lt.f32.f16x2 %rx, %ra, %rb", "set.lt.u16.s32 %hx, %ra, %rb",
        "set.lt.f16x2.f32 %rx, %ra, %rb", "slct.f32.u32 %rx, %ra, %rb, %rc",
        "slct.ftz.f32.s32 %rx, %ra, %rb, %rc", "selp.pred %px, %pa, %pb, %pc"}) {
    EXPECT_EQ(DecodeOnly(text).code(), absl::StatusCode::kUnimplemented) << text;
  }
  EXPECT_EQ(DecodeOnly("setp.lt.and.u32 %px, %ra, %rb").code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace assay::emulator
