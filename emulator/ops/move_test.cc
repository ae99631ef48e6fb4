// Moves, packing, addresses.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "emulator/memory/device_memory.h"
#include "emulator/testing/op_fixture.h"
#include "emulator/testing/op_inputs.h"

namespace assay::emulator {
namespace {

constexpr uint64_t kSeed = 31;

TEST(MoveTest, Registers) {
  CaseCount count("mov");
  const auto inputs = MakeInputs({ValueKind::kBits64}, 1000, 2000, kSeed);
  for (const char* text :
       {"mov.b16 %hx, %ha", "mov.u16 %hx, %ha", "mov.b32 %rx, %ra", "mov.s32 %rx, %ra",
        "mov.f32 %rx, %ra", "mov.u64 %dx, %da", "mov.f64 %dx, %da", "mov.b64 %dx, %da"}) {
    count.Add(CheckOp(text, inputs, [](const OpInputs& in) { return OpOutputs{in[0]}; }));
  }
  count.Add(CheckOp("mov.u32 %rx, 4000000000", inputs,
                    [](const OpInputs&) { return OpOutputs{4000000000}; }));
  count.Add(CheckOp("mov.f32 %rx, 0f3f800000", inputs,
                    [](const OpInputs&) { return OpOutputs{0x3f800000}; }));
}

TEST(MoveTest, PacksAndUnpacks) {
  CaseCount count("mov of vectors");
  const ValueKind any = ValueKind::kBits64;
  const auto inputs = MakeInputs({any, any, any, any}, 2000, 4000, kSeed);
  struct {
    const char* text;
    int parts;
    int bits;
  } kPacks[] = {{"mov.b16 %hx, {%ba, %bb}", 2, 8},
                {"mov.b32 %rx, {%ba, %bb, %bc, %bd}", 4, 8},
                {"mov.b32 %rx, {%ha, %hb}", 2, 16},
                {"mov.b64 %dx, {%ha, %hb, %hc, %hd}", 4, 16},
                {"mov.b64 %dx, {%ra, %rb}", 2, 32}};
  for (const auto& pack : kPacks) {
    count.Add(CheckOp(pack.text, inputs, [&](const OpInputs& in) {
      uint64_t value = 0;
      for (int i = pack.parts - 1; i >= 0; --i) {
        value =
            value << pack.bits | (in[static_cast<size_t>(i)] & ((uint64_t{1} << pack.bits) - 1));
      }
      return OpOutputs{value};
    }));
  }
  struct {
    const char* text;
    int bits;
  } kUnpacks[] = {{"mov.b16 {%bx, %by}, %ha", 8},
                  {"mov.b32 {%bx, %by, %bz, %bw}, %ra", 8},
                  {"mov.b32 {%hx, %hy}, %ra", 16},
                  {"mov.b64 {%hx, %hy, %hz, %hw}, %da", 16},
                  {"mov.b64 {%rx, %ry}, %da", 32}};
  for (const auto& unpack : kUnpacks) {
    count.Add(CheckOp(unpack.text, inputs, [&](const OpInputs& in) {
      OpOutputs out = {};
      for (int i = 0; i < kOutputsMax && i * unpack.bits < 64; ++i) {
        out[static_cast<size_t>(i)] =
            in[0] >> (i * unpack.bits) & ((uint64_t{1} << unpack.bits) - 1);
      }
      return out;
    }));
  }
  count.Add(CheckOp("mov.b64 {_, %rx}, %da", inputs,
                    [](const OpInputs& in) { return OpOutputs{in[0] >> 32}; }));
  count.Add(CheckOp("mov.b64 %dx, {%ra, 7}", inputs, [](const OpInputs& in) {
    return OpOutputs{(in[0] & 0xffffffff) | uint64_t{7} << 32};
  }));
}

TEST(MoveTest, Wide) {
  OpFixture fixture;
  for (int lane = 0; lane < kLanes; ++lane) {
    fixture.Set("%da", lane, 0x1111222233334444u + static_cast<uint64_t>(lane));
    fixture.Set("%db", lane, 0x5555666677778888u - static_cast<uint64_t>(lane));
  }
  ASSERT_TRUE(fixture.Decode("mov.b128 %qa, {%da, %db}").ok());
  fixture.Run(kAllLanes);
  ASSERT_TRUE(fixture.Decode("mov.b128 %qx, %qa").ok());
  fixture.Run(kAllLanes);
  ASSERT_TRUE(fixture.Decode("mov.b128 {%dx, %dy}, %qx").ok());
  fixture.Run(0x7fffffff);
  ASSERT_TRUE(fixture.Decode("mov.b128 {%rx, %ry, %rz, %rw}, %qx").ok());
  fixture.Run(kAllLanes);
  ASSERT_TRUE(fixture.Decode("mov.b128 %qb, {%rx, %ry, %rz, %rw}").ok());
  fixture.Run(kAllLanes);
  ASSERT_TRUE(fixture.Decode("mov.b128 {%dz, %dw}, %qb").ok());
  fixture.Run(kAllLanes);
  for (int lane = 0; lane < kLanes; ++lane) {
    EXPECT_EQ(fixture.Get("%dx", lane), lane == 31 ? 0 : fixture.Get("%da", lane)) << lane;
    EXPECT_EQ(fixture.Get("%dy", lane), lane == 31 ? 0 : fixture.Get("%db", lane)) << lane;
    EXPECT_EQ(fixture.Get("%rz", lane), fixture.Get("%db", lane) & 0xffffffff) << lane;
    EXPECT_EQ(fixture.Get("%dz", lane), fixture.Get("%da", lane)) << lane;
    EXPECT_EQ(fixture.Get("%dw", lane), fixture.Get("%db", lane)) << lane;
  }
}

TEST(MoveTest, ClocksGrow) {
  OpFixture fixture;
  fixture.set_clock(0x1234567890);
  ASSERT_TRUE(fixture.Decode("mov.u64 %dx, %clock64").ok());
  fixture.Run(kAllLanes);
  EXPECT_EQ(fixture.Get("%dx", 0), 0x1234567890u);
  EXPECT_EQ(fixture.Get("%dx", 31), 0x1234567890u);
  ASSERT_TRUE(fixture.Decode("mov.u32 %rx, %clock").ok());
  fixture.Run(kAllLanes);
  EXPECT_EQ(fixture.Get("%rx", 5), 0x34567891u);
  ASSERT_TRUE(fixture.Decode("mov.u32 %rx, %clock_hi").ok());
  fixture.Run(1);
  EXPECT_EQ(fixture.Get("%rx", 0), 0x12u);
  EXPECT_EQ(fixture.Get("%rx", 1), 0x34567891u);
  ASSERT_TRUE(fixture.Decode("mov.u64 %dx, %globaltimer").ok());
  fixture.Run(kAllLanes);
  EXPECT_GT(fixture.Get("%dx", 0), 0x1234567892u);
  EXPECT_EQ(DecodeOnly("mov.u64 %dx, %clock").code(), absl::StatusCode::kUnimplemented);
}

TEST(MoveTest, Addresses) {
  CaseCount count("cvta isspacep");
  auto inputs = MakeInputs({ValueKind::kBits64}, 1000, 1000, kSeed);
  const uint64_t windows[] = {kSharedWindow, kLocalWindow, kParamWindow, kGlobalBase};
  for (const uint64_t window : windows) {
    for (const uint64_t off : {uint64_t{0}, uint64_t{0x400}, kWindowBytes - 1, kWindowBytes}) {
      inputs.push_back({window + off});
      inputs.push_back({window - 1 - off});
    }
  }
  struct {
    const char* space;
    uint64_t window;
  } kSpaces[] = {{"global", 0},
                 {"const", 0},
                 {"shared", kSharedWindow},
                 {"shared::cta", kSharedWindow},
                 {"local", kLocalWindow},
                 {"param", kParamWindow},
                 {"param::entry", kParamWindow}};
  for (const auto& space : kSpaces) {
    count.Add(CheckOp(absl::StrCat("cvta.", space.space, ".u64 %dx, %da"), inputs,
                      [&](const OpInputs& in) { return OpOutputs{in[0] + space.window}; }));
    count.Add(CheckOp(absl::StrCat("cvta.to.", space.space, ".u64 %dx, %da"), inputs,
                      [&](const OpInputs& in) { return OpOutputs{in[0] - space.window}; }));
    if (space.window == 0) continue;
    count.Add(CheckOp(
        absl::StrCat("isspacep.", space.space, " %px, %da"), inputs, [&](const OpInputs& in) {
          return OpOutputs{in[0] >= space.window && in[0] - space.window <= 0xffffffff};
        }));
  }
  count.Add(CheckOp("isspacep.global %px, %da", inputs, [](const OpInputs& in) {
    const uint64_t high = in[0] >> 32;
    return OpOutputs{high != kSharedWindow >> 32 && high != kLocalWindow >> 32};
  }));
  count.Add(CheckOp("cvta.to.shared.u32 %rx, %ra", inputs,
                    [](const OpInputs& in) { return OpOutputs{in[0]}; }));
}

TEST(MoveTest, RefusesFormsThatDoNotExist) {
  for (const char* text : {"mov.b32.v2 %rx, %ra", "cvta.shared.u32 %rx, %ra", "cvta.u64 %dx, %da",
                           "cvta.to.shared.s64 %dx, %da", "isspacep.const %px, %da",
                           "isspacep %px, %da", "mov %rx, %ra"}) {
    EXPECT_EQ(DecodeOnly(text).code(), absl::StatusCode::kUnimplemented) << text;
  }
  EXPECT_EQ(DecodeOnly("mov.b32 %rx, {%ha, %hb, %hc}").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DecodeOnly("mov.b64 %dx, {%ha, %hb}").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DecodeOnly("mov.b32 %rx, %da").code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace assay::emulator
