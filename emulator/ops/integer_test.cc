// Integer arithmetic against plain code on 128-bit numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "emulator/testing/op_fixture.h"
#include "emulator/testing/op_inputs.h"

namespace assay::emulator {
namespace {

using Int = __int128;
constexpr uint64_t kSeed = 918273;

struct IntegerType {
  const char* name;
  int bits;
  bool is_signed;
  char width;
  ValueKind kind;

  Int Value(uint64_t raw) const {
    const uint64_t low = bits == 64 ? raw : raw & ((uint64_t{1} << bits) - 1);
    if (is_signed && (low >> (bits - 1)) != 0) return Int{low} - (Int{1} << bits);
    return low;
  }
  Int Least() const { return is_signed ? -(Int{1} << (bits - 1)) : 0; }
  Int Most() const { return (Int{1} << (is_signed ? bits - 1 : bits)) - 1; }
};
constexpr IntegerType kTypes[] = {
    {"u16", 16, false, 'h', ValueKind::kBits16}, {"s16", 16, true, 'h', ValueKind::kBits16},
    {"u32", 32, false, 'r', ValueKind::kBits32}, {"s32", 32, true, 'r', ValueKind::kBits32},
    {"u64", 64, false, 'd', ValueKind::kBits64}, {"s64", 64, true, 'd', ValueKind::kBits64},
};
const IntegerType& TypeNamed(const std::string& name) {
  return *std::find_if(std::begin(kTypes), std::end(kTypes),
                       [&](const IntegerType& type) { return name == type.name; });
}

// "x, a, b" with registers as wide as the type.
std::string Registers(const IntegerType& type, const char* roles) {
  std::string text;
  for (const char* role = roles; *role != '\0'; ++role) {
    absl::StrAppend(&text, role == roles ? " %" : ", %", std::string(1, type.width),
                    std::string(1, *role));
  }
  return text;
}

std::vector<OpInputs> Inputs(const IntegerType& type, int count) {
  return MakeInputs(std::vector<ValueKind>(static_cast<size_t>(count), type.kind), 20000, 12000,
                    kSeed + static_cast<uint64_t>(type.bits));
}

TEST(IntegerTest, SumsAndQuotients) {
  CaseCount count("integer add sub div rem min max");
  for (const IntegerType& type : kTypes) {
    struct {
      const char* name;
      Int (*apply)(Int a, Int b);
    } kOperations[] = {
        {"add", [](Int a, Int b) { return a + b; }},
        {"sub", [](Int a, Int b) { return a - b; }},
        {"min", [](Int a, Int b) { return a < b ? a : b; }},
        {"max", [](Int a, Int b) { return a < b ? b : a; }},
        {"div", [](Int a, Int b) { return b == 0 ? Int{-1} : a / b; }},
        {"rem", [](Int a, Int b) { return b == 0 ? Int{-1} : a % b; }},
    };
    const auto inputs = Inputs(type, 2);
    for (const auto& operation : kOperations) {
      count.Add(CheckOp(absl::StrCat(operation.name, ".", type.name, Registers(type, "xab")),
                        inputs, [&](const OpInputs& in) {
                          return OpOutputs{static_cast<uint64_t>(
                              operation.apply(type.Value(in[0]), type.Value(in[1])))};
                        }));
    }
  }
}

TEST(IntegerTest, OneOperand) {
  CaseCount count("integer neg abs");
  for (const IntegerType& type : kTypes) {
    if (!type.is_signed) continue;
    const auto inputs = Inputs(type, 1);
    count.Add(CheckOp(
        absl::StrCat("neg.", type.name, Registers(type, "xa")), inputs,
        [&](const OpInputs& in) { return OpOutputs{static_cast<uint64_t>(-type.Value(in[0]))}; }));
    count.Add(CheckOp(absl::StrCat("abs.", type.name, Registers(type, "xa")), inputs,
                      [&](const OpInputs& in) {
                        const Int value = type.Value(in[0]);
                        return OpOutputs{static_cast<uint64_t>(value < 0 ? -value : value)};
                      }));
  }
}

// The low or high half of a product as a pattern, by schoolbook in 128 bits.
uint64_t Half(const IntegerType& type, uint64_t a, uint64_t b, bool high) {
  const Int left = type.Value(a);
  const Int right = type.Value(b);
  // The product of two unsigned 64-bit numbers fits 128 bits without their sign.
  const auto product = static_cast<unsigned __int128>(left) * static_cast<unsigned __int128>(right);
  return static_cast<uint64_t>(high ? product >> type.bits : product);
}

TEST(IntegerTest, Products) {
  CaseCount count("integer mul mad");
  for (const IntegerType& type : kTypes) {
    const auto pairs = Inputs(type, 2);
    const auto triples = Inputs(type, 3);
    for (const bool high : {false, true}) {
      const std::string mode = high ? ".hi." : ".lo.";
      count.Add(
          CheckOp("mul" + mode + type.name + Registers(type, "xab"), pairs,
                  [&](const OpInputs& in) { return OpOutputs{Half(type, in[0], in[1], high)}; }));
      count.Add(CheckOp(
          "mad" + mode + type.name + Registers(type, "xabc"), triples,
          [&](const OpInputs& in) { return OpOutputs{Half(type, in[0], in[1], high) + in[2]}; }));
    }
    if (type.bits == 64) continue;
    const std::string wide(1, type.bits == 16 ? 'r' : 'd');
    const std::string two =
        absl::StrCat("%", std::string(1, type.width), "a, %", std::string(1, type.width), "b");
    count.Add(CheckOp(absl::StrCat("mul.wide.", type.name, " %", wide, "x, ", two), pairs,
                      [&](const OpInputs& in) {
                        return OpOutputs{
                            static_cast<uint64_t>(type.Value(in[0]) * type.Value(in[1]))};
                      }));
    const auto wide_triples = MakeInputs(
        {type.kind, type.kind, type.bits == 16 ? ValueKind::kBits32 : ValueKind::kBits64}, 20000,
        12000, kSeed);
    count.Add(CheckOp(
        absl::StrCat("mad.wide.", type.name, " %", wide, "x, ", two, ", %", wide, "c"),
        wide_triples, [&](const OpInputs& in) {
          return OpOutputs{static_cast<uint64_t>(type.Value(in[0]) * type.Value(in[1])) + in[2]};
        }));
  }
}

uint64_t Limit(const IntegerType& type, Int value) {
  return static_cast<uint64_t>(std::clamp(value, type.Least(), type.Most()));
}

TEST(IntegerTest, Saturation) {
  CaseCount count("integer sat");
  const IntegerType& type = TypeNamed("s32");
  const auto pairs = Inputs(type, 2);
  const auto triples = Inputs(type, 3);
  count.Add(CheckOp("add.sat.s32 %rx, %ra, %rb", pairs, [&](const OpInputs& in) {
    return OpOutputs{Limit(type, type.Value(in[0]) + type.Value(in[1]))};
  }));
  count.Add(CheckOp("sub.sat.s32 %rx, %ra, %rb", pairs, [&](const OpInputs& in) {
    return OpOutputs{Limit(type, type.Value(in[0]) - type.Value(in[1]))};
  }));
  count.Add(CheckOp("mad.hi.sat.s32 %rx, %ra, %rb, %rc", triples, [&](const OpInputs& in) {
    const Int high = (type.Value(in[0]) * type.Value(in[1])) >> 32;
    return OpOutputs{Limit(type, high + type.Value(in[2]))};
  }));
}

TEST(IntegerTest, Products24) {
  CaseCount count("mul24 mad24");
  for (const bool is_signed : {false, true}) {
    const std::string name = is_signed ? "s32" : "u32";
    const IntegerType& type = TypeNamed(name);
    const IntegerType part{"24", 24, is_signed, 'r', ValueKind::kBits32};
    const auto inputs = Inputs(type, 3);
    for (const bool high : {false, true}) {
      const auto product = [&](const OpInputs& in) {
        const Int full = part.Value(in[0]) * part.Value(in[1]);
        return static_cast<uint64_t>(high ? full >> 16 : full);
      };
      const std::string mode = high ? ".hi." : ".lo.";
      count.Add(CheckOp("mul24" + mode + name + " %rx, %ra, %rb", inputs,
                        [&](const OpInputs& in) { return OpOutputs{product(in)}; }));
      count.Add(CheckOp("mad24" + mode + name + " %rx, %ra, %rb, %rc", inputs,
                        [&](const OpInputs& in) { return OpOutputs{product(in) + in[2]}; }));
      if (!high || !is_signed) continue;
      count.Add(CheckOp("mad24.hi.sat.s32 %rx, %ra, %rb, %rc", inputs, [&](const OpInputs& in) {
        return OpOutputs{Limit(type, type.Value(product(in)) + type.Value(in[2]))};
      }));
    }
  }
}

TEST(IntegerTest, SumOfDifferences) {
  CaseCount count("sad");
  for (const IntegerType& type : kTypes) {
    count.Add(CheckOp(absl::StrCat("sad.", type.name, Registers(type, "xabc")), Inputs(type, 3),
                      [&](const OpInputs& in) {
                        const Int difference = type.Value(in[0]) - type.Value(in[1]);
                        const Int distance = difference < 0 ? -difference : difference;
                        return OpOutputs{static_cast<uint64_t>(distance) + in[2]};
                      }));
  }
}

TEST(IntegerTest, PackedHalves) {
  CaseCount count("u16x2 s16x2, relu");
  const auto inputs = MakeInputs({ValueKind::kBits32, ValueKind::kBits32}, 20000, 20000, kSeed);
  const auto both = [](const IntegerType& type, const OpInputs& in, auto&& apply) {
    const auto low = static_cast<uint64_t>(apply(type.Value(in[0]), type.Value(in[1])));
    const auto high =
        static_cast<uint64_t>(apply(type.Value(in[0] >> 16), type.Value(in[1] >> 16)));
    return OpOutputs{(low & 0xffff) | (high & 0xffff) << 16};
  };
  for (const bool is_signed : {false, true}) {
    const IntegerType& type = TypeNamed(is_signed ? "s16" : "u16");
    const std::string tail = absl::StrCat(".", type.name, "x2 %rx, %ra, %rb");
    count.Add(CheckOp("add" + tail, inputs, [&](const OpInputs& in) {
      return both(type, in, [](Int a, Int b) { return a + b; });
    }));
    for (const bool relu : {false, true}) {
      if (relu && !is_signed) continue;
      const std::string end = (relu ? ".relu" : "") + tail;
      const auto limit = [relu](Int value) { return relu && value < 0 ? Int{0} : value; };
      count.Add(CheckOp("min" + end, inputs, [&](const OpInputs& in) {
        return both(type, in, [&](Int a, Int b) { return limit(std::min(a, b)); });
      }));
      count.Add(CheckOp("max" + end, inputs, [&](const OpInputs& in) {
        return both(type, in, [&](Int a, Int b) { return limit(std::max(a, b)); });
      }));
    }
  }
  const IntegerType& type = TypeNamed("s32");
  count.Add(CheckOp("min.relu.s32 %rx, %ra, %rb", inputs, [&](const OpInputs& in) {
    const Int least = std::min(type.Value(in[0]), type.Value(in[1]));
    return OpOutputs{static_cast<uint64_t>(least < 0 ? 0 : least)};
  }));
  count.Add(CheckOp("max.relu.s32 %rx, %ra, %rb", inputs, [&](const OpInputs& in) {
    const Int most = std::max(type.Value(in[0]), type.Value(in[1]));
    return OpOutputs{static_cast<uint64_t>(most < 0 ? 0 : most)};
  }));
}

// Sums with a carry: the carry in is input d of each case, and the carry out is looked at by hand.
struct CarryOperation {
  const char* text;
  const char* type;
  bool carry_in;
  bool carry_out;
  bool subtract;
  int product;  // 0: none, 1: low, 2: high
};
constexpr CarryOperation kCarryOperations[] = {
    {"add.cc.u32 %rx, %ra, %rb", "u32", false, true, false, 0},
    {"add.cc.s32 %rx, %ra, %rb", "s32", false, true, false, 0},
    {"add.cc.u64 %dx, %da, %db", "u64", false, true, false, 0},
    {"addc.u32 %rx, %ra, %rb", "u32", true, false, false, 0},
    {"addc.cc.u32 %rx, %ra, %rb", "u32", true, true, false, 0},
    {"addc.cc.s64 %dx, %da, %db", "s64", true, true, false, 0},
    {"sub.cc.u32 %rx, %ra, %rb", "u32", false, true, true, 0},
    {"sub.cc.u64 %dx, %da, %db", "u64", false, true, true, 0},
    {"subc.u32 %rx, %ra, %rb", "u32", true, false, true, 0},
    {"subc.cc.s32 %rx, %ra, %rb", "s32", true, true, true, 0},
    {"subc.cc.u64 %dx, %da, %db", "u64", true, true, true, 0},
    {"mad.lo.cc.u32 %rx, %ra, %rb, %rc", "u32", false, true, false, 1},
    {"mad.hi.cc.s32 %rx, %ra, %rb, %rc", "s32", false, true, false, 2},
    {"mad.hi.cc.u64 %dx, %da, %db, %dc", "u64", false, true, false, 2},
    {"madc.lo.u32 %rx, %ra, %rb, %rc", "u32", true, false, false, 1},
    {"madc.lo.cc.u64 %dx, %da, %db, %dc", "u64", true, true, false, 1},
    {"madc.hi.cc.u32 %rx, %ra, %rb, %rc", "u32", true, true, false, 2},
    {"madc.hi.s64 %dx, %da, %db, %dc", "s64", true, false, false, 2},
};

// The result with the carry in the bit above it; differences borrow.
unsigned __int128 CarryReference(const CarryOperation& operation, const OpInputs& in, bool carry) {
  const IntegerType& type = TypeNamed(operation.type);
  const auto ones = (static_cast<unsigned __int128>(1) << type.bits) - 1;
  unsigned __int128 left = in[0] & ones;
  unsigned __int128 right = in[1] & ones;
  if (operation.product != 0) {
    left = Half(type, in[0], in[1], operation.product == 2) & ones;
    right = in[2] & ones;
  }
  const unsigned extra = operation.carry_in && carry ? 1 : 0;
  if (!operation.subtract) return left + right + extra;
  return (left - right - extra) & ((ones << 1) | 1);
}

TEST(IntegerTest, Carries) {
  CaseCount count("carries");
  for (const CarryOperation& operation : kCarryOperations) {
    const IntegerType& type = TypeNamed(operation.type);
    const auto inputs = Inputs(type, 3);
    OpFixture fixture;
    ASSERT_TRUE(fixture.Decode(operation.text).ok()) << operation.text;
    const std::string output = fixture.outputs()[0];
    int failures = 0;
    for (size_t first = 0; first + kLanes <= inputs.size(); first += kLanes) {
      const uint32_t carry = static_cast<uint32_t>(inputs[first][0] * 2654435761u);
      const uint32_t mask = first % 3 == 0 ? 0x0ff0f0f1u : kAllLanes;
      for (int lane = 0; lane < kLanes; ++lane) {
        const OpInputs& in = inputs[first + static_cast<size_t>(lane)];
        for (const std::string& name : fixture.inputs()) {
          fixture.Set(name, lane, in[static_cast<size_t>(name[2] - 'a')]);
        }
        fixture.Set(output, lane, 0x1234567812345678);
      }
      fixture.set_carry(carry);
      fixture.Run(mask);
      for (int lane = 0; lane < kLanes; ++lane) {
        const OpInputs& in = inputs[first + static_cast<size_t>(lane)];
        const bool active = (mask >> lane & 1) != 0;
        const bool before = (carry >> lane & 1) != 0;
        const unsigned __int128 want = CarryReference(operation, in, before);
        const uint64_t ones = ~uint64_t{0} >> (64 - type.bits);
        const uint64_t value = active ? static_cast<uint64_t>(want) : 0x1234567812345678;
        const bool changed = active && operation.carry_out;
        const bool after = changed ? static_cast<bool>(want >> type.bits & 1) : before;
        if (fixture.Get(output, lane) != (value & ones)) ++failures;
        if ((fixture.carry() >> lane & 1) != (after ? 1u : 0u)) ++failures;
      }
    }
    EXPECT_EQ(failures, 0) << operation.text;
    count.Add(static_cast<int64_t>(inputs.size()));
  }
}

TEST(IntegerTest, RefusesFormsThatDoNotExist) {
  for (const char* text :
       {"add.sat.u32 %rx, %ra, %rb", "mul.s32 %rx, %ra, %rb", "mul.wide.u64 %dx, %da, %db",
        "mad.lo.sat.s32 %rx, %ra, %rb, %rc", "neg.u32 %rx, %ra", "abs.u64 %dx, %da",
        "min.relu.u32 %rx, %ra, %rb", "div.u8 %hx, %ha, %hb", "add.u32.u32 %rx, %ra, %rb",
        "mul24.u32 %rx, %ra, %rb", "addc.u16 %hx, %ha, %hb", "sub.u16x2 %rx, %ra, %rb",
        "rem.sat.s32 %rx, %ra, %rb", "add %rx, %ra, %rb"}) {
    EXPECT_EQ(DecodeOnly(text).code(), absl::StatusCode::kUnimplemented) << text;
  }
}

}  // namespace
}  // namespace assay::emulator
