// Conversions that pack and unpack, against MPFR and against every byte and half there is.
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

constexpr uint64_t kSeed = 2718;

struct Packed {
  const char* name;
  RefFormat format;
  int bits;
  const char* modes[2];
  bool always_finite;
};
constexpr Packed kPacked[] = {
    {"f16x2", RefFormat::kF16, 16, {"rn", "rz"}, false},
    {"bf16x2", RefFormat::kBF16, 16, {"rn", "rz"}, false},
    {"e4m3x2", RefFormat::kE4M3, 8, {"rn", nullptr}, true},
    {"e5m2x2", RefFormat::kE5M2, 8, {"rn", nullptr}, true},
};

std::vector<OpInputs> PairsOfFloats() {
  auto inputs = MakeInputs({ValueKind::kF32, ValueKind::kF32}, 20000, 10000, kSeed);
  // Values around the numbers of narrow formats.
  for (uint32_t i = 0; i < 20000; ++i) {
    const double base = std::ldexp(16.0 + i % 32 / 2.0, static_cast<int>(i / 32 % 40) - 26);
    const double value = base * (1 + (static_cast<int>(i % 3) - 1) * 0x1p-20);
    const uint64_t bits =
        RefFromDouble(RefFormat::kF32, RefRounding::kNearest, i % 2 == 0 ? value : -value);
    inputs.push_back({bits, bits ^ 0x80000001});
  }
  return inputs;
}

TEST(ConvertPackedTest, TwoFloatsToOneRegister) {
  CaseCount count("cvt of two f32");
  const auto inputs = PairsOfFloats();
  for (const Packed& packed : kPacked) {
    for (const char* mode : packed.modes) {
      if (mode == nullptr) continue;
      for (const bool relu : {false, true}) {
        for (const bool finite : {false, true}) {
          if (packed.always_finite && !finite) continue;
          const std::string flags =
              packed.always_finite ? absl::StrCat(".satfinite", relu ? ".relu" : "")
                                   : absl::StrCat(relu ? ".relu" : "", finite ? ".satfinite" : "");
          const std::string text = absl::StrCat("cvt.", mode, flags, ".", packed.name, ".f32 %",
                                                packed.bits == 8 ? "h" : "r", "x, %ra, %rb");
          count.Add(CheckOp(text, inputs, [&](const OpInputs& in) {
            const auto part = [&](uint64_t bits) {
              double value = RefValue(RefFormat::kF32, bits);
              if (relu && value <= 0) value = 0.0;
              return RefFromDouble(packed.format, RefRoundingOf(mode), value, finite);
            };
            return OpOutputs{part(in[0]) << packed.bits | part(in[1])};
          }));
        }
      }
    }
  }
}

TEST(ConvertPackedTest, HalvesToBytes) {
  CaseCount count("cvt of f16x2 to bytes");
  std::vector<OpInputs> inputs;
  for (uint64_t bits = 0; bits < 0x10000; ++bits) inputs.push_back({bits << 16 | (bits ^ 0x1234)});
  for (const Packed& packed : kPacked) {
    if (packed.bits != 8) continue;
    for (const bool relu : {false, true}) {
      for (const bool bfloat : {false, true}) {
        const RefFormat from = bfloat ? RefFormat::kBF16 : RefFormat::kF16;
        const std::string text =
            absl::StrCat("cvt.rn.satfinite", relu ? ".relu." : ".", packed.name,
                         bfloat ? ".bf16x2" : ".f16x2", " %hx, %ra");
        count.Add(CheckOp(text, inputs, [&](const OpInputs& in) {
          const auto part = [&](uint64_t bits) {
            double value = RefValue(from, bits & 0xffff);
            if (relu && value <= 0) value = 0.0;
            return RefFromDouble(packed.format, RefRounding::kNearest, value, true);
          };
          return OpOutputs{part(in[0] >> 16) << 8 | part(in[0])};
        }));
      }
    }
  }
}

TEST(ConvertPackedTest, BytesToHalves) {
  CaseCount count("cvt of bytes to f16x2");
  std::vector<OpInputs> inputs;
  for (uint64_t bits = 0; bits < 0x10000; ++bits) inputs.push_back({bits});
  for (const Packed& packed : kPacked) {
    if (packed.bits != 8) continue;
    for (const bool relu : {false, true}) {
      const std::string text =
          absl::StrCat("cvt.rn", relu ? ".relu" : "", ".f16x2.", packed.name, " %rx, %ha");
      count.Add(CheckOp(text, inputs, [&](const OpInputs& in) {
        const auto part = [&](uint64_t bits) {
          const uint64_t half = RefFromDouble(RefFormat::kF16, RefRounding::kNearest,
                                              RefValue(packed.format, bits & 0xff));
          return relu ? RefRelu(RefFormat::kF16, half) : half;
        };
        return OpOutputs{part(in[0] >> 8) << 16 | part(in[0])};
      }));
    }
  }
}

TEST(ConvertPackedTest, IntegersLimitedAndPacked) {
  CaseCount count("cvt.pack");
  const auto inputs =
      MakeInputs({ValueKind::kBits32, ValueKind::kBits32, ValueKind::kBits32}, 20000, 10000, kSeed);
  for (const int bits : {16, 8, 4, 2}) {
    for (const bool is_signed : {false, true}) {
      const std::string text =
          absl::StrCat("cvt.pack.sat.", is_signed ? "s" : "u", bits, ".s32",
                       bits == 16 ? " %rx, %ra, %rb" : ".b32 %rx, %ra, %rb, %rc");
      count.Add(CheckOp(text, inputs, [&](const OpInputs& in) {
        const int64_t most = (int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
        const int64_t least = is_signed ? -most - 1 : 0;
        const auto part = [&](uint64_t raw) {
          const int64_t value = static_cast<int32_t>(raw);
          return static_cast<uint64_t>(std::clamp(value, least, most)) &
                 ((uint64_t{1} << bits) - 1);
        };
        uint64_t result = part(in[0]) << bits | part(in[1]);
        if (bits < 16) result |= (in[2] << (2 * bits)) & 0xffffffff;
        return OpOutputs{result};
      }));
    }
  }
}

TEST(ConvertPackedTest, RefusesFormsThatDoNotExist) {
  for (const char* text :
       {"cvt.f16x2.f32 %rx, %ra, %rb", "cvt.rm.f16x2.f32 %rx, %ra, %rb",
        "cvt.rn.e4m3x2.f32 %hx, %ra, %rb", "cvt.rz.satfinite.e4m3x2.f32 %hx, %ra, %rb",
        "cvt.rn.bf16x2.e4m3x2 %rx, %ha", "cvt.rs.f16x2.f32 %rx, %ra, %rb, %rc",
        "cvt.rn.satfinite.e2m1x2.f32 %hx, %ra, %rb", "cvt.rn.f16x2.f64 %rx, %da, %db",
        "cvt.pack.s16.s32 %rx, %ra, %rb", "cvt.pack.sat.s16.u32 %rx, %ra, %rb",
        "cvt.pack.sat.s8.s32 %rx, %ra, %rb"}) {
    EXPECT_EQ(DecodeOnly(text).code(), absl::StatusCode::kUnimplemented) << text;
  }
  EXPECT_EQ(DecodeOnly("cvt.rn.f16x2.f32 %rx, %ra").code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace assay::emulator
