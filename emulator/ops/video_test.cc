// Dot products of bytes and video instructions, against sums written out.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "emulator/testing/op_fixture.h"
#include "emulator/testing/op_inputs.h"

namespace assay::emulator {
namespace {

constexpr uint64_t kSeed = 42;

int64_t Part(uint64_t value, int index, int bits, bool is_signed) {
  const auto raw =
      static_cast<int64_t>((value & 0xffffffff) >> (index * bits)) % (int64_t{1} << bits);
  return is_signed && raw >= int64_t{1} << (bits - 1) ? raw - (int64_t{1} << bits) : raw;
}

std::vector<OpInputs> Inputs() {
  return MakeInputs({ValueKind::kBits32, ValueKind::kBits32, ValueKind::kBits32}, 2000, 2000,
                    kSeed);
}

const char* SignName(bool is_signed) { return is_signed ? ".s32" : ".u32"; }

TEST(VideoTest, DotProducts) {
  CaseCount count("dp4a dp2a");
  const auto inputs = Inputs();
  for (int form = 0; form < 4; ++form) {
    const bool signed_a = (form & 1) != 0;
    const bool signed_b = (form & 2) != 0;
    const std::string types = absl::StrCat(SignName(signed_a), SignName(signed_b));
    count.Add(CheckOp("dp4a" + types + " %rx, %ra, %rb, %rc", inputs, [&](const OpInputs& in) {
      auto sum = static_cast<int64_t>(in[2]);
      for (int i = 0; i < 4; ++i) sum += Part(in[0], i, 8, signed_a) * Part(in[1], i, 8, signed_b);
      return OpOutputs{static_cast<uint64_t>(sum)};
    }));
    for (const bool high : {false, true}) {
      const std::string text =
          absl::StrCat("dp2a", high ? ".hi" : ".lo", types, " %rx, %ra, %rb, %rc");
      count.Add(CheckOp(text, inputs, [&](const OpInputs& in) {
        auto sum = static_cast<int64_t>(in[2]);
        for (int i = 0; i < 2; ++i) {
          sum += Part(in[0], i, 16, signed_a) * Part(in[1], high ? i + 2 : i, 8, signed_b);
        }
        return OpOutputs{static_cast<uint64_t>(sum)};
      }));
    }
  }
}

struct Operation {
  const char* name;
  int64_t (*apply)(int64_t a, int64_t b);
  bool has_scalar;
};
constexpr Operation kOperations[] = {
    {"vadd", [](int64_t a, int64_t b) { return a + b; }, true},
    {"vsub", [](int64_t a, int64_t b) { return a - b; }, true},
    {"vabsdiff", [](int64_t a, int64_t b) { return std::max(a, b) - std::min(a, b); }, true},
    {"vmin", [](int64_t a, int64_t b) { return std::min(a, b); }, true},
    {"vmax", [](int64_t a, int64_t b) { return std::max(a, b); }, true},
    {"vavrg",
     [](int64_t a, int64_t b) {
       const int64_t sum = a + b;
       return (sum >= 0 ? sum + 1 : sum) >> 1;
     },
     false},
};

int64_t Limit(int64_t value, int bits, bool is_signed) {
  const int64_t most = (int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
  return std::clamp(value, is_signed ? -most - 1 : 0, most);
}

TEST(VideoTest, PartsSideBySide) {
  CaseCount count("v*2 v*4");
  const auto inputs = Inputs();
  for (const Operation& operation : kOperations) {
    for (const int parts : {2, 4}) {
      const int bits = 32 / parts;
      for (int form = 0; form < 24; ++form) {
        const bool signed_result = (form & 1) != 0;
        const bool signed_a = (form & 2) != 0;
        const bool signed_b = (form & 4) != 0;
        const int ending = form / 8;  // nothing, .sat, .add
        const char* kEndings[] = {"", ".sat", ".add"};
        const std::string text =
            absl::StrCat(operation.name, parts, SignName(signed_result), SignName(signed_a),
                         SignName(signed_b), kEndings[ending], " %rx, %ra, %rb, %rc");
        count.Add(CheckOp(text, inputs, [&](const OpInputs& in) {
          uint64_t result = ending == 2 ? in[2] : 0;
          for (int i = 0; i < parts; ++i) {
            int64_t value =
                operation.apply(Part(in[0], i, bits, signed_a), Part(in[1], i, bits, signed_b));
            if (ending == 1) value = Limit(value, bits, signed_result);
            const auto raw = static_cast<uint64_t>(value);
            result += ending == 2 ? raw : raw % (uint64_t{1} << bits) << (i * bits);
          }
          return OpOutputs{result};
        }));
      }
    }
  }
}

TEST(VideoTest, Scalars) {
  CaseCount count("vadd vsub vabsdiff vmin vmax");
  const auto inputs = Inputs();
  const char* kSeconds[] = {"", ".add", ".min", ".max"};
  for (const Operation& operation : kOperations) {
    if (!operation.has_scalar) continue;
    for (int form = 0; form < 64; ++form) {
      const bool signed_result = (form & 1) != 0;
      const bool signed_a = (form & 2) != 0;
      const bool signed_b = (form & 4) != 0;
      const bool saturate = (form & 8) != 0;
      const int second = form / 16;
      const std::string text = absl::StrCat(
          operation.name, SignName(signed_result), SignName(signed_a), SignName(signed_b),
          saturate ? ".sat" : "", kSeconds[second], " %rx, %ra, %rb", second == 0 ? "" : ", %rc");
      count.Add(CheckOp(text, inputs, [&](const OpInputs& in) {
        int64_t value = operation.apply(Part(in[0], 0, 32, signed_a), Part(in[1], 0, 32, signed_b));
        if (saturate) value = Limit(value, 32, signed_result);
        const int64_t first = Part(static_cast<uint64_t>(value), 0, 32, signed_result);
        const int64_t other = Part(in[2], 0, 32, signed_result);
        const int64_t results[] = {first, first + other, std::min(first, other),
                                   std::max(first, other)};
        return OpOutputs{static_cast<uint64_t>(results[second])};
      }));
    }
  }
}

TEST(VideoTest, RefusesFormsThatDoNotExist) {
  for (const char* text :
       {"dp4a.u8.u8 %rx, %ra, %rb, %rc", "dp2a.u32.u32 %rx, %ra, %rb, %rc",
        "dp4a.lo.u32.u32 %rx, %ra, %rb, %rc", "vadd4.u32.u32.u32.sat.add %rx, %ra, %rb, %rc",
        "vadd2.u32.u32.u32.min %rx, %ra, %rb, %rc", "vadd.u16.u32.u32 %rx, %ra, %rb"}) {
    EXPECT_EQ(DecodeOnly(text).code(), absl::StatusCode::kUnimplemented) << text;
  }
}

}  // namespace
}  // namespace assay::emulator
