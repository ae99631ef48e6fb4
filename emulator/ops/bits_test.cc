// Logic, shifts, permutes and bit fields against loops over single bits.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "emulator/testing/op_fixture.h"
#include "emulator/testing/op_inputs.h"

namespace assay::emulator {
namespace {

constexpr uint64_t kSeed = 555;

bool Bit(uint64_t value, int at) { return (value >> at & 1) != 0; }

struct BitType {
  const char* name;
  int bits;
  char width;
  ValueKind kind;
};
constexpr BitType kTypes[] = {{"b16", 16, 'h', ValueKind::kBits16},
                              {"b32", 32, 'r', ValueKind::kBits32},
                              {"b64", 64, 'd', ValueKind::kBits64}};

std::string Name(const BitType& type, char role) {
  return absl::StrCat("%", std::string(1, type.width), std::string(1, role));
}

// A value made bit by bit.
template <typename F>
uint64_t Build(int bits, F&& f) {
  uint64_t value = 0;
  for (int i = 0; i < bits; ++i) value |= uint64_t{f(i)} << i;
  return value;
}

TEST(BitsTest, Logic) {
  CaseCount count("and or xor not cnot");
  for (const BitType& type : kTypes) {
    const auto inputs = MakeInputs({type.kind, type.kind}, 5000, 3000, kSeed);
    struct {
      const char* name;
      bool (*apply)(bool, bool);
    } kOperations[] = {{"and", [](bool a, bool b) { return a && b; }},
                       {"or", [](bool a, bool b) { return a || b; }},
                       {"xor", [](bool a, bool b) { return a != b; }}};
    for (const auto& operation : kOperations) {
      const std::string text = absl::StrCat(operation.name, ".", type.name, " ", Name(type, 'x'),
                                            ", ", Name(type, 'a'), ", ", Name(type, 'b'));
      count.Add(CheckOp(text, inputs, [&](const OpInputs& in) {
        return OpOutputs{
            Build(type.bits, [&](int i) { return operation.apply(Bit(in[0], i), Bit(in[1], i)); })};
      }));
    }
    const std::string two = absl::StrCat(" ", Name(type, 'x'), ", ", Name(type, 'a'));
    count.Add(CheckOp(absl::StrCat("not.", type.name, two), inputs, [&](const OpInputs& in) {
      return OpOutputs{Build(type.bits, [&](int i) { return !Bit(in[0], i); })};
    }));
    count.Add(CheckOp(absl::StrCat("cnot.", type.name, two), inputs, [&](const OpInputs& in) {
      bool any = false;
      for (int i = 0; i < type.bits; ++i) any = any || Bit(in[0], i);
      return OpOutputs{any ? uint64_t{0} : 1};
    }));
  }
}

TEST(BitsTest, Shifts) {
  CaseCount count("shl shr");
  for (const BitType& type : kTypes) {
    const auto inputs = MakeInputs({type.kind, ValueKind::kShift}, 5000, 5000, kSeed);
    const std::string operands = absl::StrCat(" ", Name(type, 'x'), ", ", Name(type, 'a'), ", %rb");
    count.Add(CheckOp(absl::StrCat("shl.", type.name, operands), inputs, [&](const OpInputs& in) {
      const uint64_t amount = in[1] & 0xffffffff;
      return OpOutputs{Build(type.bits, [&](int i) {
        return static_cast<uint64_t>(i) >= amount && Bit(in[0], i - static_cast<int>(amount));
      })};
    }));
    for (const char kind : {'b', 'u', 's'}) {
      const std::string name = absl::StrCat("shr.", std::string(1, kind), type.bits, operands);
      count.Add(CheckOp(name, inputs, [&](const OpInputs& in) {
        const uint64_t amount = in[1] & 0xffffffff;
        const bool fill = kind == 's' && Bit(in[0], type.bits - 1);
        return OpOutputs{Build(type.bits, [&](int i) {
          const uint64_t from = static_cast<uint64_t>(i) + amount;
          return from < static_cast<uint64_t>(type.bits) ? Bit(in[0], static_cast<int>(from))
                                                         : fill;
        })};
      }));
    }
  }
}

TEST(BitsTest, FunnelShifts) {
  CaseCount count("shf");
  const auto inputs =
      MakeInputs({ValueKind::kBits32, ValueKind::kBits32, ValueKind::kShift}, 20000, 5000, kSeed);
  for (const bool left : {false, true}) {
    for (const bool clamp : {false, true}) {
      const std::string text = absl::StrCat("shf.", left ? "l." : "r.", clamp ? "clamp" : "wrap",
                                            ".b32 %rx, %ra, %rb, %rc");
      count.Add(CheckOp(text, inputs, [&](const OpInputs& in) {
        const uint64_t c = in[2] & 0xffffffff;
        const int n = static_cast<int>(clamp ? (c > 32 ? 32 : c) : c % 32);
        // Bit i of the 64 bits b:a.
        const auto source = [&](int i) { return i < 32 ? Bit(in[0], i) : Bit(in[1], i - 32); };
        return OpOutputs{Build(32, [&](int i) { return source(left ? i + 32 - n : i + n); })};
      }));
    }
  }
}

TEST(BitsTest, EveryTableOfThreeInputs) {
  CaseCount count("lop3");
  const auto inputs = MakeInputs(
      {ValueKind::kBits32, ValueKind::kBits32, ValueKind::kBits32, ValueKind::kPredicate}, 200, 200,
      kSeed);
  for (int table = 0; table < 256; ++table) {
    const auto value = [&](const OpInputs& in) {
      return Build(32, [&](int i) {
        const int entry = Bit(in[0], i) * 4 + Bit(in[1], i) * 2 + Bit(in[2], i);
        return Bit(static_cast<uint64_t>(table), entry);
      });
    };
    count.Add(CheckOp(absl::StrCat("lop3.b32 %rx, %ra, %rb, %rc, ", table), inputs,
                      [&](const OpInputs& in) { return OpOutputs{value(in)}; }));
    const bool is_or = table % 2 == 0;
    const bool negated = table % 3 == 0;
    const std::string text = absl::StrCat("lop3.", is_or ? "or" : "and", ".b32 %rx|%py, %ra, %rb, ",
                                          "%rc, ", table, negated ? ", !%pd" : ", %pd");
    count.Add(CheckOp(text, inputs, [&](const OpInputs& in) {
      const bool some = value(in) != 0;
      const bool other = (in[3] != 0) != negated;
      return OpOutputs{value(in), is_or ? some || other : some && other};
    }));
  }
}

TEST(BitsTest, Permutes) {
  CaseCount count("prmt");
  const auto inputs =
      MakeInputs({ValueKind::kBits32, ValueKind::kBits32, ValueKind::kBits32}, 30000, 20000, kSeed);
  const auto byte = [](const OpInputs& in, uint64_t index) {
    return (index < 4 ? in[0] >> (8 * index) : in[1] >> (8 * (index - 4))) & 0xff;
  };
  count.Add(CheckOp("prmt.b32 %rx, %ra, %rb, %rc", inputs, [&](const OpInputs& in) {
    uint64_t result = 0;
    for (int i = 0; i < 4; ++i) {
      const uint64_t selector = in[2] >> (4 * i) & 15;
      uint64_t value = byte(in, selector % 8);
      if (selector >= 8) value = value >= 0x80 ? 0xff : 0;
      result += value << (8 * i);
    }
    return OpOutputs{result};
  }));
  struct {
    const char* mode;
    uint64_t (*source)(uint64_t control, uint64_t at);
  } kModes[] = {
      {"f4e", [](uint64_t c, uint64_t i) { return c + i; }},
      {"b4e", [](uint64_t c, uint64_t i) { return (c + 8 - i) % 8; }},
      {"rc8", [](uint64_t c, uint64_t) { return c; }},
      {"ecl", [](uint64_t c, uint64_t i) { return i < c ? c : i; }},
      {"ecr", [](uint64_t c, uint64_t i) { return i < c ? i : c; }},
      {"rc16", [](uint64_t c, uint64_t i) { return c % 2 * 2 + i % 2; }},
  };
  for (const auto& mode : kModes) {
    count.Add(CheckOp(absl::StrCat("prmt.b32.", mode.mode, " %rx, %ra, %rb, %rc"), inputs,
                      [&](const OpInputs& in) {
                        uint64_t result = 0;
                        for (uint64_t i = 0; i < 4; ++i) {
                          result += byte(in, mode.source(in[2] % 4, i)) << (8 * i);
                        }
                        return OpOutputs{result};
                      }));
  }
}

TEST(BitsTest, BitFields) {
  CaseCount count("bfe bfi");
  for (const int bits : {32, 64}) {
    const BitType& type = kTypes[bits == 32 ? 1 : 2];
    const std::string x = Name(type, 'x');
    const std::string a = Name(type, 'a');
    const auto extract =
        MakeInputs({type.kind, ValueKind::kShift, ValueKind::kShift}, 30000, 20000, kSeed);
    for (const bool is_signed : {false, true}) {
      const std::string text =
          absl::StrCat("bfe.", is_signed ? "s" : "u", bits, " ", x, ", ", a, ", %rb, %rc");
      count.Add(CheckOp(text, extract, [&](const OpInputs& in) {
        const int position = static_cast<int>(in[1] & 0xff);
        const int length = static_cast<int>(in[2] & 0xff);
        const int last = position + length - 1 < bits ? position + length - 1 : bits - 1;
        const bool fill = is_signed && length != 0 && Bit(in[0], last);
        return OpOutputs{Build(bits, [&](int i) {
          return i < length && position + i < bits ? Bit(in[0], position + i) : fill;
        })};
      }));
    }
    const auto insert = MakeInputs({type.kind, type.kind, ValueKind::kShift, ValueKind::kShift},
                                   40000, 20000, kSeed);
    count.Add(CheckOp(
        absl::StrCat("bfi.", type.name, " ", x, ", ", a, ", ", Name(type, 'b'), ", %rc, %rd"),
        insert, [&](const OpInputs& in) {
          const int position = static_cast<int>(in[2] & 0xff);
          const int length = static_cast<int>(in[3] & 0xff);
          return OpOutputs{Build(bits, [&](int i) {
            const bool inside = i >= position && i < position + length;
            return inside ? Bit(in[0], i - position) : Bit(in[1], i);
          })};
        }));
  }
}

TEST(BitsTest, Counts) {
  CaseCount count("bfind brev clz popc");
  for (const int bits : {32, 64}) {
    const BitType& type = kTypes[bits == 32 ? 1 : 2];
    const std::string a = Name(type, 'a');
    const auto inputs = MakeInputs({type.kind}, 5000, 20000, kSeed);
    for (const bool is_signed : {false, true}) {
      for (const bool shift : {false, true}) {
        const std::string text = absl::StrCat("bfind.", shift ? "shiftamt." : "",
                                              is_signed ? "s" : "u", bits, " %rx, ", a);
        count.Add(CheckOp(text, inputs, [&](const OpInputs& in) {
          const bool sign = is_signed && Bit(in[0], bits - 1);
          for (int i = bits - 1; i >= 0; --i) {
            if (Bit(in[0], i) != sign)
              return OpOutputs{static_cast<uint64_t>(shift ? bits - 1 - i : i)};
          }
          return OpOutputs{0xffffffff};
        }));
      }
    }
    count.Add(CheckOp(absl::StrCat("brev.", type.name, " ", Name(type, 'x'), ", ", a), inputs,
                      [&](const OpInputs& in) {
                        return OpOutputs{
                            Build(bits, [&](int i) { return Bit(in[0], bits - 1 - i); })};
                      }));
    count.Add(
        CheckOp(absl::StrCat("popc.", type.name, " %rx, ", a), inputs, [&](const OpInputs& in) {
          uint64_t ones = 0;
          for (int i = 0; i < bits; ++i) ones += Bit(in[0], i) ? 1 : 0;
          return OpOutputs{ones};
        }));
    count.Add(
        CheckOp(absl::StrCat("clz.", type.name, " %rx, ", a), inputs, [&](const OpInputs& in) {
          uint64_t zeros = 0;
          while (zeros < static_cast<uint64_t>(bits) &&
                 !Bit(in[0], bits - 1 - static_cast<int>(zeros)))
            ++zeros;
          return OpOutputs{zeros};
        }));
  }
}

TEST(BitsTest, MasksAndExtensions) {
  CaseCount count("szext bmsk fns");
  const auto amounts = MakeInputs({ValueKind::kBits32, ValueKind::kShift}, 20000, 10000, kSeed);
  const auto positions = MakeInputs({ValueKind::kShift, ValueKind::kShift}, 20000, 10000, kSeed);
  for (const bool clamp : {false, true}) {
    const std::string mode = clamp ? "clamp" : "wrap";
    for (const bool is_signed : {false, true}) {
      const std::string text =
          absl::StrCat("szext.", mode, is_signed ? ".s32" : ".u32", " %rx, %ra, %rb");
      count.Add(CheckOp(text, amounts, [&](const OpInputs& in) {
        const uint64_t b = in[1] & 0xffffffff;
        const int n = static_cast<int>(clamp ? (b > 32 ? 32 : b) : b % 32);
        return OpOutputs{Build(32, [&](int i) {
          if (i < n) return Bit(in[0], i);
          return is_signed && n > 0 && Bit(in[0], n - 1);
        })};
      }));
    }
    count.Add(CheckOp(absl::StrCat("bmsk.", mode, ".b32 %rx, %ra, %rb"), positions,
                      [&](const OpInputs& in) {
                        const uint64_t a = in[0] & 0xffffffff;
                        const uint64_t b = in[1] & 0xffffffff;
                        const uint64_t first = clamp ? a : a % 32;
                        const uint64_t width = clamp ? b : b % 32;
                        return OpOutputs{Build(32, [&](int i) {
                          const auto at = static_cast<uint64_t>(i);
                          return at >= first && at - first < width;
                        })};
                      }));
  }
  auto finds =
      MakeInputs({ValueKind::kBits32, ValueKind::kBits32, ValueKind::kBits32}, 4000, 20000, kSeed);
  for (OpInputs& in : finds) {
    in[1] %= 32;
    if (in[2] % 3 != 0) in[2] = in[2] % 41 - 20;
  }
  count.Add(CheckOp("fns.b32 %rx, %ra, %rb, %rc", finds, [](const OpInputs& in) {
    const auto offset = static_cast<int32_t>(in[2]);
    const auto base = static_cast<int>(in[1]);
    if (offset == 0) return OpOutputs{Bit(in[0], base) ? in[1] : 0xffffffff};
    int64_t wanted = offset > 0 ? offset : -int64_t{offset};
    for (int at = base; at >= 0 && at<32; at += offset> 0 ? 1 : -1) {
      if (Bit(in[0], at) && --wanted == 0) return OpOutputs{static_cast<uint64_t>(at)};
    }
    return OpOutputs{0xffffffff};
  }));
}

TEST(BitsTest, RefusesFormsThatDoNotExist) {
  for (const char* text :
       {"and.u32 %rx, %ra, %rb", "shl.u32 %rx, %ra, %rb", "shf.l.b32 %rx, %ra, %rb, %rc",
        "shf.l.wrap.b64 %rx, %ra, %rb, %rc", "prmt.b32.f5e %rx, %ra, %rb, %rc",
        "lop3.xor.b32 %rx|%py, %ra, %rb, %rc, 1, %pd", "bfe.b32 %rx, %ra, %rb, %rc",
        "bfi.u32 %rx, %ra, %rb, %rc, %rd", "popc.u32 %rx, %ra", "bmsk.b32 %rx, %ra, %rb",
        "cnot.pred %px, %pa"}) {
    EXPECT_EQ(DecodeOnly(text).code(), absl::StatusCode::kUnimplemented) << text;
  }
  EXPECT_EQ(DecodeOnly("lop3.b32 %rx, %ra, %rb, %rc, 256").code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DecodeOnly("lop3.or.b32 %rx, %ra, %rb, %rc, 1, %pd").code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DecodeOnly("shl.b64 %dx, %da, %db").code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace assay::emulator
