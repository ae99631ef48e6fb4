// Race words: bytes of a word by themselves, and rows at once against the same word by word.
#include "emulator/memory/race.h"

#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "emulator/memory/race_run.h"
#include "gtest/gtest.h"

namespace assay::emulator {
namespace {

constexpr uint32_t kWarps = 4;

// A warp's view of its block, `clock` ahead of a barrier at which all clocks were `epoch` - 1.
struct ViewOfWarp {
  std::array<uint32_t, kWarps> known = {};
  RaceView view;

  ViewOfWarp(uint32_t warp, uint32_t epoch, uint32_t ahead = 0, uint32_t block = 0,
             uint32_t generation = 0) {
    known.fill(epoch - 1);
    known[warp] = epoch + ahead;
    view.warp = warp;
    view.block = block;
    view.generation = generation;
    view.block_epoch = epoch;
    view.known = known.data();
    view.known_least = epoch - 1;
    view.level = true;
    view.own = PackStamp({known[warp], warp * 32, Accessors::kThread, false, block, generation});
    view.summary = PackStamp({epoch, 0, Accessors::kBlock, false, block, generation});
  }
  ViewOfWarp(const ViewOfWarp&) = delete;

  const RaceView& Of(uint32_t lane) {
    view.thread = view.warp * 32 + lane;
    return view;
  }
};

struct Word {
  uint64_t words[2] = {};
  uint64_t of_bytes[8] = {};
  RaceWords at() { return {words, of_bytes}; }
};

TEST(RaceBytesTest, BytesOfAWordAreApart) {
  Word word;
  ViewOfWarp first(0, 1);
  ViewOfWarp second(1, 1);
  EXPECT_EQ(CheckWrite(word.at(), 0x1, first.Of(0)).earlier, 0u);
  EXPECT_EQ(CheckWrite(word.at(), 0x2, second.Of(0)).earlier, 0u);
  EXPECT_EQ(CheckWrite(word.at(), 0xc, first.Of(1)).earlier, 0u);
  const RaceConflict same = CheckWrite(word.at(), 0x2, second.Of(1));
  EXPECT_TRUE(same.earlier_writes);
  EXPECT_EQ(UnpackStamp(same.earlier).thread, 32u);
}

TEST(RaceBytesTest, LanesOfOneWarpAreToldApart) {
  Word word;
  ViewOfWarp warp(0, 1);
  EXPECT_EQ(CheckWrite(word.at(), 0x3, warp.Of(0)).earlier, 0u);
  EXPECT_EQ(CheckWrite(word.at(), 0xc, warp.Of(1)).earlier, 0u);
  EXPECT_EQ(CheckRead(word.at(), 0x3, warp.Of(0)).earlier, 0u);
  const RaceConflict conflict = CheckRead(word.at(), 0x3, warp.Of(1));
  ASSERT_TRUE(conflict.earlier_writes);
  EXPECT_EQ(UnpackStamp(conflict.earlier).thread, 0u);
  EXPECT_NE(CheckRead(word.at(), 0xf, warp.Of(0)).earlier, 0u) << "thread 1 wrote half of it";
}

TEST(RaceBytesTest, AWordThatWasWrittenWholeIsSplit) {
  Word word;
  ViewOfWarp first(0, 1);
  ViewOfWarp second(1, 1);
  EXPECT_EQ(CheckWrite(word.at(), 0xf, first.Of(5)).earlier, 0u);
  const RaceConflict conflict = CheckRead(word.at(), 0x4, second.Of(0));
  EXPECT_TRUE(conflict.earlier_writes);
  EXPECT_EQ(UnpackStamp(conflict.earlier).thread, 5u);
  EXPECT_EQ(CheckRead(word.at(), 0x8, first.Of(5)).earlier, 0u);
}

TEST(RaceBytesTest, AReadByteConflictsWithAWriteOfTheWord) {
  Word word;
  ViewOfWarp first(0, 1);
  ViewOfWarp second(1, 1);
  EXPECT_EQ(CheckRead(word.at(), 0x4, first.Of(3)).earlier, 0u);
  const RaceConflict conflict = CheckWrite(word.at(), 0xf, second.Of(0));
  EXPECT_FALSE(conflict.earlier_writes);
  EXPECT_EQ(UnpackStamp(conflict.earlier).thread, 3u);
}

TEST(RaceBytesTest, AfterABarrierTheWordIsOneAgain) {
  Word word;
  ViewOfWarp before(0, 1);
  for (uint32_t lane = 0; lane < 4; ++lane)
    EXPECT_EQ(CheckWrite(word.at(), 1u << lane, before.Of(lane)).earlier, 0u);
  ViewOfWarp after(1, 2);
  EXPECT_EQ(CheckRead(word.at(), 0xf, after.Of(0)).earlier, 0u);
  EXPECT_EQ(word.words[0], 0u);
  EXPECT_EQ(word.words[1], after.view.own);
}

// A stamp that accesses may have left, now or before the last barrier.
uint64_t SomeStamp(std::mt19937_64* random, const RaceView& view, bool reader) {
  const auto pick = [&](uint64_t count) { return (*random)() % count; };
  if (pick(4) == 0) return 0;
  if (reader && pick(4) == 0) return view.summary;
  if (reader && view.generation != 0 && pick(4) == 0) {
    return PackStamp({0, 0, Accessors::kBlock, false, kManyBlocks, view.generation});
  }
  RaceStamp stamp;
  stamp.thread =
      static_cast<uint32_t>(pick(2) == 0 ? view.warp * 32 + pick(32) : pick(kWarps * 32));
  stamp.clock = view.block_epoch - static_cast<uint32_t>(pick(3) == 0);
  if (stamp.warp() == view.warp && pick(2) == 0) stamp.clock = view.known[view.warp];
  stamp.kind = reader && pick(3) == 0 ? Accessors::kWarp : Accessors::kThread;
  stamp.atomic = !reader && pick(8) == 0;
  stamp.block = view.block + static_cast<uint32_t>(view.generation != 0 && pick(8) == 0);
  stamp.generation = view.generation - static_cast<uint32_t>(view.generation != 0 && pick(4) == 0);
  return PackStamp(stamp);
}

struct Row {
  std::vector<uint64_t> words;
  std::vector<uint8_t> owner;
};

// Mostly what the row's own lanes left, so that rows pass as often as not.
Row SomeRow(std::mt19937_64* random, const RaceView& view, bool writes) {
  const auto pick = [&](uint64_t count) { return (*random)() % count; };
  Row row;
  const uint64_t count = 1 + pick(9);
  const bool wild = pick(2) == 0;
  for (uint64_t i = 0; i < count; ++i) {
    const bool several = !writes && pick(4) == 0;
    row.owner.push_back(static_cast<uint8_t>(pick(32) | (several ? 32 : 0)));
    const uint64_t own = race_internal::OwnerStamp(view, row.owner.back());
    row.words.push_back(wild || pick(16) == 0      ? SomeStamp(random, view, false)
                        : pick(4) == 0 && !several ? own
                                                   : 0);
    row.words.push_back(wild || pick(4) == 0 ? SomeStamp(random, view, true)
                        : pick(2) == 0       ? own
                        : writes             ? 0
                                             : view.summary);
  }
  return row;
}

// Word by word; the conflicts.
std::vector<uint64_t> CheckEach(ViewOfWarp* warp, bool writes, Row* row) {
  std::vector<uint64_t> conflicts;
  for (size_t i = 0; i < row->owner.size(); ++i) {
    uint64_t of_bytes[8] = {};
    const RaceWords at = {&row->words[2 * i], of_bytes};
    const RaceView& view = warp->Of(row->owner[i] & 31);
    const Accessors who = row->owner[i] > 31 ? Accessors::kWarp : Accessors::kThread;
    conflicts.push_back(
        (writes ? CheckWrite(at, 0xf, view) : CheckRead(at, 0xf, view, who)).earlier);
  }
  return conflicts;
}

struct RunCase {
  const char* name;
  bool global;
  bool writes;
};

class RaceRunTest : public testing::TestWithParam<RunCase> {};

TEST_P(RaceRunTest, SaysAndRecordsWhatEveryWordDoes) {
  const RunCase& c = GetParam();
  constexpr uint64_t kSeed = 20240229;
  std::mt19937_64 random(kSeed);
  int passed = 0;
  int unsure = 0;
  for (int trial = 0; trial < 20'000; ++trial) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << ", trial " << trial);
    ViewOfWarp warp(static_cast<uint32_t>(random() % kWarps), 5,
                    static_cast<uint32_t>(random() % 2), c.global ? 7 : 0, c.global ? 3 : 0);
    const Row before = SomeRow(&random, warp.view, c.writes);
    Row each = before;
    const std::vector<uint64_t> conflicts = CheckEach(&warp, c.writes, &each);
    Row run = before;
    const auto count = static_cast<uint32_t>(run.owner.size());
    bool ok = false;
    bool settled = false;
    if (c.writes) {
      ok = (c.global ? WriteGlobalRun : WriteSharedRun)(run.words.data(), count, run.owner.data(),
                                                        warp.view);
    } else if (c.global) {
      ok = ReadGlobalRun(run.words.data(), count, run.owner.data(), warp.view);
    } else {
      const RunOrder order = ReadSharedRun(run.words.data(), count, run.owner.data(), warp.view);
      ok = order != RunOrder::kUnsure;
      settled = order == RunOrder::kSettled;
    }
    ++(ok ? passed : unsure);
    if (ok) {
      for (const uint64_t conflict : conflicts) ASSERT_EQ(conflict, 0u);
    } else {
      // Whoever is asked after it says the same as if it had not been asked.
      ASSERT_EQ(CheckEach(&warp, c.writes, &run), conflicts);
    }
    ASSERT_EQ(run.words, each.words);
    if (!settled) continue;
    ViewOfWarp other((warp.view.warp + 1) % kWarps, 5);
    for (const uint64_t conflict : CheckEach(&other, false, &run)) ASSERT_EQ(conflict, 0u);
    ASSERT_EQ(run.words, each.words);
  }
  EXPECT_GT(passed, 1000);
  EXPECT_GT(unsure, 1000);
}
INSTANTIATE_TEST_SUITE_P(
    Cases, RaceRunTest,
    testing::Values(RunCase{"SharedReads", false, false}, RunCase{"SharedWrites", false, true},
                    RunCase{"GlobalReads", true, false}, RunCase{"GlobalWrites", true, true}),
    [](const testing::TestParamInfo<RunCase>& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace assay::emulator
