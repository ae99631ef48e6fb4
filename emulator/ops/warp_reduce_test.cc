// match and redux.
#include "emulator/ops/warp_reduce.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/test_matchers.h"
#include "emulator/testing/fake_warp.h"
#include "gtest/gtest.h"

namespace assay::emulator {
namespace {

constexpr uint32_t kUntouched = 0x55555555;

struct MatchLanes {
  explicit MatchLanes(Type type = Type::kB32)
      : source(warp.NewRegister(type)),
        to(warp.NewRegister(Type::kB32)),
        predicate(warp.NewRegister(Type::kPred)) {
    for (int lane = 0; lane < kLanes; ++lane) warp.Values<uint32_t>(to)[lane] = kUntouched;
  }
  uint32_t Result(int lane) { return warp.Values<uint32_t>(to)[lane]; }

  FakeWarp warp;
  const Operand source, to, predicate;
};

TEST(Match, AnyGroupsEqualValues) {
  for (const bool wide : {false, true}) {
    MatchLanes lanes(wide ? Type::kB64 : Type::kB32);
    for (int lane = 0; lane < kLanes; ++lane) {
      // The low halves of wide values are all equal.
      if (wide) {
        lanes.warp.Values<uint64_t>(lanes.source)[lane] = static_cast<uint64_t>(lane % 3) << 32;
      } else {
        lanes.warp.Values<uint32_t>(lanes.source)[lane] = static_cast<uint32_t>(lane % 3);
      }
    }
    ASSERT_OK(lanes.warp.Decode(wide ? "match.any.sync.b64" : "match.any.sync.b32",
                                {lanes.to, lanes.source, Integer(0xffffff)}));
    lanes.warp.Run(0xffffff);
    for (int lane = 0; lane < kLanes; ++lane) {
      const uint32_t expected = 0x249249u << (lane % 3) & 0xffffff;
      EXPECT_EQ(lanes.Result(lane), lane < 24 ? expected : kUntouched) << "lane " << lane;
    }
  }
}

TEST(Match, AllIsAllOrNothing) {
  MatchLanes lanes;
  for (int lane = 0; lane < kLanes; ++lane)
    lanes.warp.Values<uint32_t>(lanes.source)[lane] = lane < 16 ? 7 : 8;
  struct AllCase {
    uint32_t party;
    bool equal;
  };
  for (const auto& [party, equal] :
       {AllCase{0xffff, true}, AllCase{0xffff0000, true}, AllCase{0x1ffff, false}}) {
    ASSERT_OK(lanes.warp.Decode("match.all.sync.b32", {WithPredicate(lanes.to, lanes.predicate),
                                                       lanes.source, Integer(party)}));
    lanes.warp.Mask(lanes.predicate) = 0;
    lanes.warp.Run(party);
    EXPECT_EQ(lanes.Result(16 - (party & 1) * 16), equal ? party : 0);
    EXPECT_EQ(lanes.warp.Mask(lanes.predicate), equal ? party : 0);
  }
}

struct ReduxCase {
  std::string form;
  std::vector<uint32_t> values;  // of lanes 0, 1, ...
  uint32_t expected;
};

uint32_t Float(float value) { return std::bit_cast<uint32_t>(value); }

class Redux : public testing::TestWithParam<ReduxCase> {};

TEST_P(Redux, OverTheParty) {
  const ReduxCase& c = GetParam();
  MatchLanes lanes;
  // What lies outside of the party would change every result.
  for (int lane = 0; lane < kLanes; ++lane)
    lanes.warp.Values<uint32_t>(lanes.source)[lane] = lane % 2 == 0 ? 0x80000000 : 0x7f7fffff;
  for (size_t i = 0; i < c.values.size(); ++i)
    lanes.warp.Values<uint32_t>(lanes.source)[i] = c.values[i];
  const uint32_t party = (1u << c.values.size()) - 1;
  ASSERT_OK(lanes.warp.Decode("redux.sync." + c.form, {lanes.to, lanes.source, Integer(party)}));
  lanes.warp.Run(party);
  for (size_t i = 0; i < c.values.size(); ++i)
    EXPECT_EQ(lanes.Result(static_cast<int>(i)), c.expected);
  EXPECT_EQ(lanes.Result(kLanes - 1), kUntouched);
  EXPECT_TRUE(lanes.warp.faults.empty());
}

constexpr uint32_t kNan = 0xffc01234;
constexpr uint32_t kCanonical = 0x7fffffff;

INSTANTIATE_TEST_SUITE_P(
    All, Redux,
    testing::Values(ReduxCase{"add.u32", {1, 2, 0xffffffff}, 2},
                    ReduxCase{"add.s32", {0x7fffffff, 1}, 0x80000000},
                    ReduxCase{"min.u32", {5, 0xffffffff, 3}, 3},
                    ReduxCase{"min.s32", {5, 0xffffffff, 3}, 0xffffffff},
                    ReduxCase{"max.u32", {5, 0xffffffff, 3}, 0xffffffff},
                    ReduxCase{"max.s32", {5, 0xffffffff, 3}, 5},
                    ReduxCase{"and.b32", {0xff0, 0x0ff}, 0x0f0},
                    ReduxCase{"or.b32", {0xff0, 0x00f}, 0xfff}, ReduxCase{"xor.b32", {1, 3, 5}, 7},
                    ReduxCase{"max.u32", {9}, 9},
                    ReduxCase{"min.f32", {Float(2), Float(-3), Float(1)}, Float(-3)},
                    ReduxCase{"max.f32", {Float(-2), Float(-3)}, Float(-2)},
                    ReduxCase{"min.f32", {Float(0.0f), Float(-0.0f)}, Float(-0.0f)},
                    ReduxCase{"max.f32", {Float(-0.0f), Float(0.0f)}, Float(0.0f)},
                    ReduxCase{"max.abs.f32", {Float(-5), Float(3)}, Float(5)},
                    ReduxCase{"min.f32", {kNan, Float(4)}, Float(4)},
                    ReduxCase{"max.f32", {kNan, kNan}, kCanonical},
                    ReduxCase{"max.f32", {kNan, Float(-4)}, Float(-4)},
                    ReduxCase{"min.NaN.f32", {Float(1), kNan, Float(-4)}, kCanonical},
                    ReduxCase{"max.abs.NaN.f32", {Float(1), kNan}, kCanonical},
                    ReduxCase{"max.f32", {Float(INFINITY), Float(1)}, Float(INFINITY)}),
    [](const auto& info) {
      std::string name = info.param.form + "_" + std::to_string(info.index);
      for (char& c : name) c = c == '.' ? '_' : c;
      return name;
    });

TEST(ReduceDecode, RefusesWhatNobodyEmulates) {
  MatchLanes lanes;
  const Operand r = lanes.to;
  for (const std::string opcode :
       {"redux.sync.add.f32", "redux.sync.add.b32", "redux.sync.min.abs.s32", "redux.sync.xor.u32",
        "redux.sync", "redux.add.s32", "redux.sync.add.s32.x", "match.any.b32",
        "match.any.sync.b16", "match.some.sync.b32"}) {
    EXPECT_THAT(lanes.warp.Decode(opcode, {r, r, r}), StatusIs(absl::StatusCode::kUnimplemented))
        << opcode;
  }
  EXPECT_THAT(lanes.warp.Decode("match.any.sync.b32", {WithPredicate(r, lanes.predicate), r, r}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(lanes.warp.Decode("redux.sync.add.s32", {r, r}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace assay::emulator
