// shfl, vote, activemask, elect, bar.warp, nanosleep.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/test_matchers.h"
#include "emulator/ops/warp_party.h"
#include "emulator/testing/fake_warp.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay::emulator {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

constexpr uint32_t kUntouched = 0x55555555;

// A warp with a source that differs in every lane and a destination that shows whether it was
// written.
struct Lanes32 {
  Lanes32()
      : source(warp.NewRegister(Type::kB32)),
        to(warp.NewRegister(Type::kB32)),
        predicate(warp.NewRegister(Type::kPred)),
        members(warp.NewRegister(Type::kB32)) {
    for (int lane = 0; lane < kLanes; ++lane) {
      warp.Values<uint32_t>(source)[lane] = ValueOf(lane);
      warp.Values<uint32_t>(to)[lane] = kUntouched;
      warp.Values<uint32_t>(members)[lane] = kAllLanes;
    }
  }
  static uint32_t ValueOf(int lane) { return 1000 + static_cast<uint32_t>(lane); }
  uint32_t Result(int lane) { return warp.Values<uint32_t>(to)[lane]; }

  FakeWarp warp;
  const Operand source, to, predicate, members;
};

struct ShuffleCase {
  std::string name;
  std::string mode;
  int b;
  int c;  // clamp and, from bit 8 on, segment mask
  // Where a lane's value comes from, -1 when it keeps its own.
  std::function<int(int lane)> source;
};

std::vector<ShuffleCase> ShuffleCases() {
  const auto within = [](int width, int from, int lane) {
    return from / width == lane / width && from >= 0 ? from : -1;
  };
  return {
      {"bfly_16", "bfly", 16, 0x1f, [](int l) { return l ^ 16; }},
      {"bfly_1_of_8", "bfly", 1, 0x181f, [](int l) { return l ^ 1; }},
      // Across segments: only a higher one is out of range.
      {"bfly_8_of_8", "bfly", 8, 0x181f, [](int l) { return (l ^ 8) < l ? l ^ 8 : -1; }},
      {"up_3", "up", 3, 0, [=](int l) { return l >= 3 ? l - 3 : -1; }},
      {"up_1_of_4", "up", 1, 0x1c00, [=](int l) { return l % 4 >= 1 ? l - 1 : -1; }},
      {"down_5", "down", 5, 0x1f, [](int l) { return l + 5 < 32 ? l + 5 : -1; }},
      {"down_2_of_16", "down", 2, 0x101f, [=](int l) { return within(16, l + 2, l); }},
      {"idx_7", "idx", 7, 0x1f, [](int) { return 7; }},
      {"idx_2_of_8", "idx", 2, 0x181f, [](int l) { return l / 8 * 8 + 2; }},
      // Bits of the lane beyond the segment are not looked at.
      {"idx_9_of_8", "idx", 9, 0x181f, [](int l) { return l / 8 * 8 + 1; }},
      {"idx_clamped", "idx", 20, 0x0f, [](int) { return -1; }},
      {"b_modulo_32", "down", 33, 0x1f, [](int l) { return l < 31 ? l + 1 : -1; }},
  };
}

class Shuffle : public testing::TestWithParam<std::tuple<ShuffleCase, bool>> {};

TEST_P(Shuffle, TakesTheLaneOfItsSegment) {
  const auto& [c, sync] = GetParam();
  Lanes32 lanes;
  std::vector<Operand> operands = {WithPredicate(lanes.to, lanes.predicate), lanes.source,
                                   Integer(c.b), Integer(c.c)};
  if (sync) operands.push_back(Integer(-1));
  ASSERT_OK(lanes.warp.Decode((sync ? "shfl.sync." : "shfl.") + c.mode + ".b32", operands));
  lanes.warp.Run();
  EXPECT_TRUE(lanes.warp.faults.empty());
  for (int lane = 0; lane < kLanes; ++lane) {
    const int source = c.source(lane);
    EXPECT_EQ(lanes.Result(lane), Lanes32::ValueOf(source < 0 ? lane : source)) << "lane " << lane;
    EXPECT_EQ(lanes.warp.Mask(lanes.predicate) >> lane & 1, source >= 0) << "lane " << lane;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Shuffle,
                         testing::Combine(testing::ValuesIn(ShuffleCases()), testing::Bool()),
                         [](const auto& info) {
                           return std::get<0>(info.param).name +
                                  (std::get<1>(info.param) ? "_sync" : "_old");
                         });

TEST(ShuffleInPlace, ReadsBeforeItWrites) {
  Lanes32 lanes;
  ASSERT_OK(lanes.warp.Decode("shfl.sync.idx.b32",
                              {lanes.source, lanes.source, Integer(31), Integer(31), Integer(-1)}));
  lanes.warp.Run();
  for (int lane = 0; lane < kLanes; ++lane)
    EXPECT_EQ(lanes.warp.Values<uint32_t>(lanes.source)[lane], 1031u);
}

struct AbsentCase {
  uint32_t live;
  uint32_t mask;
  uint32_t members;
  std::string why;
};

TEST(ShuffleAbsent, NamesBothLanesAndPoisons) {
  for (const AbsentCase& c :
       {AbsentCase{kAllLanes, 0xffff, 0xffff,
                   "lane 15 reads from lane 16, which is not named in its member mask"},
        AbsentCase{0xffff, 0xffff, kAllLanes, "lane 15 reads from lane 16, which has exited"}}) {
    Lanes32 lanes;
    lanes.warp.live = c.live;
    ASSERT_OK(lanes.warp.Decode("shfl.sync.down.b32", {lanes.to, lanes.source, Integer(1),
                                                       Integer(31), Integer(c.members)}));
    lanes.warp.Run(c.mask);
    ASSERT_EQ(lanes.warp.faults.size(), 1u) << c.why;
    EXPECT_EQ(lanes.warp.faults[0].kind, FaultKind::kAbsentLane);
    EXPECT_EQ(lanes.warp.faults[0].lane, 15);
    EXPECT_THAT(lanes.warp.faults[0].message, HasSubstr(c.why));
    EXPECT_EQ(lanes.Result(14), 1015u);
    EXPECT_NE(lanes.Result(15), Lanes32::ValueOf(15));
    EXPECT_NE(lanes.Result(15), Lanes32::ValueOf(16));
    EXPECT_NE(lanes.Result(15), kUntouched);
    EXPECT_EQ(lanes.Result(16), kUntouched);
  }
}

TEST(ShuffleAbsent, OfTheOldFormIsWhoDoesNotExecuteIt) {
  Lanes32 lanes;
  ASSERT_OK(lanes.warp.Decode("shfl.bfly.b32", {lanes.to, lanes.source, Integer(2), Integer(31)}));
  lanes.warp.Run(0x7);
  // Lanes 0 and 2 exchange; lane 1 reads lane 3.
  ASSERT_EQ(lanes.warp.faults.size(), 1u);
  EXPECT_EQ(lanes.warp.faults[0].lane, 1);
  EXPECT_EQ(lanes.Result(0), 1002u);
}

TEST(ShuffleAbsent, KeepingOnesOwnValueIsNoFault) {
  Lanes32 lanes;
  ASSERT_OK(lanes.warp.Decode("shfl.sync.down.b32", {lanes.to, lanes.source, Integer(16),
                                                     Integer(31), Integer(0xffff0000)}));
  lanes.warp.Run(0xffff0000);
  EXPECT_TRUE(lanes.warp.faults.empty());
  EXPECT_EQ(lanes.Result(20), 1020u);
}

TEST(Parties, OfOneWarpExchangeApart) {
  Lanes32 lanes;
  for (int lane = 0; lane < kLanes; ++lane) {
    lanes.warp.Values<uint32_t>(lanes.members)[lane] = lane < 8        ? 0xff
                                                       : lane % 2 == 0 ? 0x55555500
                                                                       : 0xaaaaaa00;
  }
  ASSERT_OK(lanes.warp.Decode("match.any.sync.b32", {lanes.to, Integer(4), lanes.members}));
  lanes.warp.Run();
  EXPECT_TRUE(lanes.warp.faults.empty());
  EXPECT_TRUE(lanes.warp.parked.empty());
  for (int lane = 0; lane < kLanes; ++lane) {
    EXPECT_EQ(lanes.Result(lane), lanes.warp.Values<uint32_t>(lanes.members)[lane]);
  }
  EXPECT_EQ(lanes.warp.active, kAllLanes);
}

TEST(Parties, WaitWithoutHoldingUpOthers) {
  Lanes32 lanes;
  // Lanes 0-3 and 8-11 wait for others; 4-7 are complete and go on, as do 12-15, whose guard is
  // false.
  const uint32_t names[] = {0x10000f, 0xf0, 0x200f00};
  for (int lane = 0; lane < 12; ++lane)
    lanes.warp.Values<uint32_t>(lanes.members)[lane] = names[lane / 4];
  ASSERT_OK(lanes.warp.Decode("vote.sync.ballot.b32", {lanes.to, lanes.predicate, lanes.members}));
  lanes.warp.Mask(lanes.predicate) = 0x5555;
  lanes.warp.active = 0xffff;
  lanes.warp.op().handler(&lanes.warp, lanes.warp.op(), 0x0fff);
  EXPECT_THAT(lanes.warp.parked, UnorderedElementsAre(0xfu, 0xf00u));
  EXPECT_EQ(lanes.warp.active, 0xf0f0u);
  EXPECT_EQ(lanes.warp.event, WarpEvent::kParked);
  EXPECT_EQ(lanes.Result(0), kUntouched);
  EXPECT_EQ(lanes.Result(4), 0x50u);
  EXPECT_EQ(lanes.Result(8), kUntouched);
}

TEST(Parties, ParkAsOne) {
  Lanes32 lanes;
  ASSERT_OK(lanes.warp.Decode("shfl.sync.up.b32",
                              {lanes.to, lanes.source, Integer(1), Integer(0), Integer(-1)}));
  lanes.warp.Run(0xff);
  EXPECT_THAT(lanes.warp.parked, ElementsAre(0xffu));
  EXPECT_EQ(lanes.warp.active, 0u);
  EXPECT_EQ(lanes.Result(3), kUntouched);
}

TEST(Vote, OverThePartyAlone) {
  struct VoteCase {
    uint32_t predicate;
    uint32_t party;
    bool negated;
    bool all, any, uniform;
    uint32_t ballot;
  };
  for (const VoteCase& c : {VoteCase{kAllLanes, kAllLanes, false, true, true, true, kAllLanes},
                            VoteCase{0, kAllLanes, false, false, false, true, 0},
                            VoteCase{0, kAllLanes, true, true, true, true, kAllLanes},
                            VoteCase{0x10, kAllLanes, false, false, true, false, 0x10},
                            VoteCase{0xf0, 0xf0, false, true, true, true, 0xf0},
                            VoteCase{0xf0, 0x0f, false, false, false, true, 0},
                            VoteCase{0xf1, 0xff, true, false, true, false, 0x0e}}) {
    for (const bool sync : {false, true}) {
      Lanes32 lanes;
      const Operand result = lanes.warp.NewRegister(Type::kPred);
      lanes.warp.Mask(lanes.predicate) = c.predicate;
      const Operand source = c.negated ? Negated(lanes.predicate) : lanes.predicate;
      const auto run = [&](const std::string& mode, const Operand& to) {
        std::vector<Operand> operands = {to, source};
        if (sync) operands.push_back(Integer(c.party));
        EXPECT_OK(lanes.warp.Decode((sync ? "vote.sync." : "vote.") + mode, operands));
        lanes.warp.Mask(result) = 0xa5a5a5a5;
        lanes.warp.Run(c.party);
        return lanes.warp.Mask(result);
      };
      const auto mixed = [&](bool value) {
        return (0xa5a5a5a5 & ~c.party) | (value ? c.party : 0);
      };
      EXPECT_EQ(run("all.pred", result), mixed(c.all));
      EXPECT_EQ(run("any.pred", result), mixed(c.any));
      EXPECT_EQ(run("uni.pred", result), mixed(c.uniform));
      run("ballot.b32", lanes.to);
      for (int lane = 0; lane < kLanes; ++lane) {
        EXPECT_EQ(lanes.Result(lane), (c.party >> lane & 1) != 0 ? c.ballot : kUntouched);
      }
      EXPECT_TRUE(lanes.warp.faults.empty());
    }
  }
}

TEST(Vote, FromALaneThatTheMaskDoesNotName) {
  Lanes32 lanes;
  ASSERT_OK(
      lanes.warp.Decode("vote.sync.ballot.b32", {lanes.to, lanes.predicate, Integer(0xfffe)}));
  lanes.warp.Run(0xffff);
  ASSERT_EQ(lanes.warp.faults.size(), 1u);
  EXPECT_EQ(lanes.warp.faults[0].kind, FaultKind::kAbsentLane);
}

TEST(ActiveMask, IsWhoExecutesIt) {
  Lanes32 lanes;
  ASSERT_OK(lanes.warp.Decode("activemask.b32", {lanes.to}));
  lanes.warp.Run(0x8001);
  EXPECT_EQ(lanes.Result(0), 0x8001u);
  EXPECT_EQ(lanes.Result(15), 0x8001u);
  EXPECT_EQ(lanes.Result(1), kUntouched);
}

TEST(Elect, TakesOneLane) {
  Lanes32 lanes;
  lanes.warp.Mask(lanes.predicate) = 0xff0000ff;
  ASSERT_OK(
      lanes.warp.Decode("elect.sync", {WithPredicate(lanes.to, lanes.predicate), Integer(0xff0)}));
  lanes.warp.Run(0xff0);
  EXPECT_EQ(lanes.warp.Mask(lanes.predicate), 0xff00001fu);
  EXPECT_EQ(lanes.Result(4), 4u);
  EXPECT_EQ(lanes.Result(11), 4u);
  EXPECT_EQ(lanes.Result(3), kUntouched);
}

TEST(WarpBarriers, OfSeveralPartiesAtOnce) {
  Lanes32 lanes;
  for (int lane = 0; lane < kLanes; ++lane) {
    lanes.warp.Values<uint32_t>(lanes.members)[lane] = lane < 16 ? 0xffff : 0xffff0000;
  }
  ASSERT_OK(lanes.warp.Decode("bar.warp.sync", {lanes.members}));
  lanes.warp.Run();
  EXPECT_THAT(lanes.warp.barriers, ElementsAre(0xffffu, 0xffff0000u));
  // Half of them alone go on; the others wait, as lane 31 is elsewhere.
  lanes.warp.barriers.clear();
  lanes.warp.active = 0x7fffffff;
  lanes.warp.op().handler(&lanes.warp, lanes.warp.op(), 0x7fffffff);
  EXPECT_THAT(lanes.warp.barriers, ElementsAre(0xffffu));
  EXPECT_THAT(lanes.warp.parked, ElementsAre(0x7fff0000u));
  EXPECT_EQ(lanes.warp.active, 0xffffu);
}

TEST(Nanosleep, DoesNothing) {
  Lanes32 lanes;
  ASSERT_OK(lanes.warp.Decode("nanosleep.u32", {Integer(1000)}));
  lanes.warp.Run();
  EXPECT_EQ(lanes.warp.event, WarpEvent::kNone);
  EXPECT_EQ(lanes.Result(0), kUntouched);
}

TEST(WarpDecode, RefusesWhatNobodyEmulates) {
  Lanes32 lanes;
  const Operand r = lanes.source;
  const Operand p = lanes.predicate;
  struct Refused {
    std::string opcode;
    std::vector<Operand> operands;
    absl::StatusCode code;
  };
  for (const Refused& c : std::vector<Refused>{
           {"shfl.sync.left.b32", {r, r, r, r, r}, absl::StatusCode::kUnimplemented},
           {"shfl.sync.idx.b64", {r, r, r, r, r}, absl::StatusCode::kUnimplemented},
           {"shfl.sync.idx.b32.x", {r, r, r, r, r}, absl::StatusCode::kUnimplemented},
           {"shfl.sync.idx.b32", {r, r, r, r}, absl::StatusCode::kInvalidArgument},
           {"shfl.sync.idx.b32", {r, p, r, r, r}, absl::StatusCode::kInvalidArgument},
           {"shfl.idx.b32", {r, r, r, r, r}, absl::StatusCode::kInvalidArgument},
           {"vote.sync.most.pred", {p, p, r}, absl::StatusCode::kUnimplemented},
           {"vote.sync.ballot.pred", {p, p, r}, absl::StatusCode::kUnimplemented},
           {"vote.sync.all.pred", {p, p}, absl::StatusCode::kInvalidArgument},
           {"vote.sync.all.pred", {r, p, r}, absl::StatusCode::kInvalidArgument},
           {"activemask.u32", {r}, absl::StatusCode::kUnimplemented},
           {"elect", {r, r}, absl::StatusCode::kUnimplemented},
           {"elect.sync", {r, r}, absl::StatusCode::kInvalidArgument},
           {"nanosleep.u64", {r}, absl::StatusCode::kUnimplemented},
           {"bar.warp.sync", {r, r}, absl::StatusCode::kInvalidArgument},
       }) {
    EXPECT_THAT(lanes.warp.Decode(c.opcode, c.operands), StatusIs(c.code)) << c.opcode;
  }
}

}  // namespace
}  // namespace assay::emulator
