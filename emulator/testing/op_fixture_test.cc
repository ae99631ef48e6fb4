// The harness itself: that it finds what is wrong, and that its references are right where they can
// be checked by hand.
#include "emulator/testing/op_fixture.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "emulator/testing/float_reference.h"
#include "emulator/testing/op_inputs.h"

namespace assay::emulator {
namespace {

// Failures that `f` reports.
template <typename F>
int FailuresOf(F&& f) {
  testing::TestPartResultArray results;
  {
    testing::ScopedFakeTestPartResultReporter reporter(
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &results);
    f();
  }
  return results.size();
}

std::vector<OpInputs> Words() {
  return MakeInputs({ValueKind::kBits32, ValueKind::kBits32}, 500, 500, 1);
}

TEST(OpFixtureTest, FindsOneWrongCase) {
  const auto inputs = Words();
  const auto right = [](const OpInputs& in) { return OpOutputs{in[0] + in[1]}; };
  EXPECT_EQ(FailuresOf([&] { CheckOp("add.u32 %rx, %ra, %rb", inputs, right); }), 0);
  const auto wrong_once = [&](const OpInputs& in) {
    return OpOutputs{in[0] + in[1] + (in == inputs[77] ? 1 : 0)};
  };
  EXPECT_GT(FailuresOf([&] { CheckOp("add.u32 %rx, %ra, %rb", inputs, wrong_once); }), 0);
  const auto wrong_high_bit = [](const OpInputs& in) {
    return OpOutputs{(in[0] + in[1]) & 0x7fffffff};
  };
  EXPECT_GT(FailuresOf([&] { CheckOp("add.u32 %rx, %ra, %rb", inputs, wrong_high_bit); }), 0);
  EXPECT_GT(FailuresOf([&] { CheckOp("add.u33 %rx, %ra, %rb", inputs, right); }), 0);
}

// A handler that writes all lanes, and one that goes wrong when its destination is a source.
void WritesEverywhere(Warp* warp, const Op& op, uint32_t mask) {
  for (int i = 0; i < kLanes; ++i)
    Lanes<uint32_t>(warp, op.dst)[i] = Lanes<uint32_t>(warp, op.a)[i];
}

TEST(OpFixtureTest, LanesOutsideOfTheMaskAreKept) {
  OpFixture fixture;
  ASSERT_TRUE(fixture.Decode("mov.u32 %rx, %ra").ok());
  for (int lane = 0; lane < kLanes; ++lane) {
    fixture.Set("%ra", lane, 7);
    fixture.Set("%rx", lane, 9);
  }
  fixture.Run(0x0000fff0);
  for (int lane = 0; lane < kLanes; ++lane) {
    EXPECT_EQ(fixture.Get("%rx", lane), lane >= 4 && lane < 16 ? 7u : 9u) << lane;
  }
  fixture.op()->handler = &WritesEverywhere;
  fixture.Run(0x1);
  EXPECT_EQ(fixture.Get("%rx", 1), 7u);
}

TEST(OpFixtureTest, ReadsOperands) {
  OpFixture fixture;
  ASSERT_TRUE(fixture.Decode("setp.lt.and.f32 %px|%py, %ra, 0f40000000, !%pc").ok());
  EXPECT_EQ(fixture.outputs(), (std::vector<std::string>{"%px", "%py"}));
  EXPECT_EQ(fixture.inputs(), (std::vector<std::string>{"%ra", "%pc"}));
  for (int lane = 0; lane < kLanes; ++lane) {
    fixture.Set("%ra", lane, lane < 3 ? 0x3f800000 : 0x40400000);
    fixture.Set("%pc", lane, lane == 1);
  }
  fixture.Run(kAllLanes);
  EXPECT_EQ(fixture.Get("%px", 0), 1u);
  EXPECT_EQ(fixture.Get("%px", 1), 0u);
  EXPECT_EQ(fixture.Get("%px", 3), 0u);
  EXPECT_EQ(fixture.Get("%py", 3), 1u);
  EXPECT_EQ(fixture.Decode("nothing.f32 %rx").code(), absl::StatusCode::kNotFound);
}

TEST(FloatReferenceTest, KnownResults) {
  const auto f32 = [](RefOperation operation, RefRounding rounding, uint64_t a, uint64_t b) {
    return RefArithmetic(RefFormat::kF32, operation, rounding, a, b, 0);
  };
  // 1 / 3, and 1 - 1 in every direction.
  EXPECT_EQ(f32(RefOperation::kDivide, RefRounding::kNearest, 0x3f800000, 0x40400000), 0x3eaaaaabu);
  EXPECT_EQ(f32(RefOperation::kDivide, RefRounding::kZero, 0x3f800000, 0x40400000), 0x3eaaaaaau);
  EXPECT_EQ(f32(RefOperation::kSubtract, RefRounding::kNearest, 0x3f800000, 0x3f800000), 0u);
  EXPECT_EQ(f32(RefOperation::kSubtract, RefRounding::kDown, 0x3f800000, 0x3f800000), 0x80000000u);
  // The least normal number halved, and halved again at the least subnormal one: ties.
  EXPECT_EQ(f32(RefOperation::kMultiply, RefRounding::kNearest, 0x00800000, 0x3f000000),
            0x00400000u);
  EXPECT_EQ(f32(RefOperation::kMultiply, RefRounding::kNearest, 0x00000001, 0x3f000000), 0u);
  EXPECT_EQ(f32(RefOperation::kMultiply, RefRounding::kUp, 0x00000001, 0x3f000000), 1u);
  EXPECT_EQ(f32(RefOperation::kMultiply, RefRounding::kNearest, 0x00000003, 0x3f000000), 2u);
  // Overflow.
  EXPECT_EQ(f32(RefOperation::kAdd, RefRounding::kNearest, 0x7f7fffff, 0x7f7fffff), 0x7f800000u);
  EXPECT_EQ(f32(RefOperation::kAdd, RefRounding::kZero, 0x7f7fffff, 0x7f7fffff), 0x7f7fffffu);
  EXPECT_EQ(f32(RefOperation::kAdd, RefRounding::kNearest, 0x7f800000, 0xff800000), 0x7fffffffu);
}

TEST(FloatReferenceTest, NarrowFormats) {
  const auto round = [](RefFormat format, double value) {
    return RefFromDouble(format, RefRounding::kNearest, value);
  };
  EXPECT_EQ(round(RefFormat::kF16, 1.0), 0x3c00u);
  EXPECT_EQ(round(RefFormat::kF16, 65519.99), 0x7bffu);
  EXPECT_EQ(round(RefFormat::kF16, 65520.0), 0x7c00u);
  EXPECT_EQ(round(RefFormat::kF16, -0x1p-24), 0x8001u);
  EXPECT_EQ(round(RefFormat::kF16, 0x1p-25), 0u);
  EXPECT_EQ(round(RefFormat::kF16, 0x1.8p-24), 2u);
  EXPECT_EQ(round(RefFormat::kBF16, 1.00390625), 0x3f80u);
  EXPECT_EQ(round(RefFormat::kE4M3, 448.0), 0x7eu);
  EXPECT_EQ(round(RefFormat::kE4M3, 0x1p-9), 0x01u);
  EXPECT_EQ(round(RefFormat::kE5M2, 57344.0), 0x7bu);
  EXPECT_EQ(RefFromDouble(RefFormat::kTF32, RefRounding::kNearestAway, 1 + 0x1p-11), 0x3f802000u);
  EXPECT_EQ(RefFromDouble(RefFormat::kTF32, RefRounding::kNearest, 1 + 0x1p-11), 0x3f800000u);
  // There and back for every half.
  for (const RefFormat format : {RefFormat::kF16, RefFormat::kBF16}) {
    for (uint64_t bits = 0; bits < 0x10000; ++bits) {
      if (RefIsNan(format, bits)) continue;
      ASSERT_EQ(RefEncode(format, RefValue(format, bits)), bits);
    }
  }
}

}  // namespace
}  // namespace assay::emulator
