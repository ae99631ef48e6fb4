// Host threads that meet at places: nobody sees another's work half done, and of two accesses that
// race the later one finds the earlier.
#include "emulator/memory/place_locks.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include "emulator/memory/race.h"
#include "gtest/gtest.h"

namespace assay::emulator {
namespace {

TEST(PlaceSetTest, NeighboursLieTogetherAndRangesHaveAllOfThem) {
  const auto indices = [](const PlaceSet& set) {
    std::vector<size_t> all;
    set.Each([&](size_t i) { all.push_back(i); });
    return all;
  };
  PlaceSet one;
  for (uint64_t address = 0x400; address < 0x800; address += 4) one.Add(address);
  EXPECT_EQ(indices(one), std::vector<size_t>{1});
  PlaceSet three;
  three.AddRange(0xffc, 0x408);  // the last byte is at 0x1403
  EXPECT_EQ(indices(three), (std::vector<size_t>{3, 4, 5}));
  PlaceSet around;
  around.AddRange(0x7000'0003'fc00, 0x800);
  EXPECT_EQ(indices(around), (std::vector<size_t>{0, 255}));
  PlaceSet all;
  all.AddRange(12, uint64_t{1} << 30);
  EXPECT_EQ(indices(all).size(), PlaceSet::kCount);
}

// Several places at a time, which threads name in any order.
TEST(PlaceLocksTest, NobodyIsAtAPlaceThatAnotherHolds) {
  constexpr uint64_t kSeed = 20250607;
  constexpr int kThreads = 4;
  constexpr int kTurns = 20'000;
  constexpr size_t kPlaces = 5;
  PlaceLocks locks;
  std::array<uint64_t, kPlaces> counts = {};  // plain
  std::vector<std::array<uint64_t, kPlaces>> expected(kThreads);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(kSeed + t);
      for (int turn = 0; turn < kTurns; ++turn) {
        const uint64_t some = random() % (1u << kPlaces);
        PlaceSet set;
        for (size_t i = 0; i < kPlaces; ++i) {
          if ((some >> i & 1) != 0) set.Add(i << PlaceSet::kPlaceShift);
        }
        PlaceHold hold;
        hold.Take(&locks, set);
        for (size_t i = 0; i < kPlaces; ++i) {
          if ((some >> i & 1) == 0) continue;
          ++counts[i];
          ++expected[t][i];
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < kPlaces; ++i) {
    uint64_t sum = 0;
    for (const auto& of_thread : expected) sum += of_thread[i];
    EXPECT_EQ(counts[i], sum) << "seed " << kSeed << ", place " << i;
  }
}

// Two threads that do `count` turns side by side: neither begins one before the other has ended the
// last.
template <typename F>
void SideBySide(int count, F&& turn) {
  std::atomic<int> arrived{0};
  const auto run = [&](int who) {
    for (int i = 0; i < count; ++i) {
      arrived.fetch_add(1);
      while (arrived.load() < 2 * (i + 1)) std::this_thread::yield();
      turn(who, i);
    }
  };
  std::thread other(run, 1);
  run(0);
  other.join();
}

enum class Kind { kRead, kWrite, kAtomic };

struct Meeting {
  const char* name;
  Kind first;
  Kind second;
};

class RaceMeetingTest : public testing::TestWithParam<Meeting> {};

TEST_P(RaceMeetingTest, OneOfTwoFindsTheOther) {
  constexpr int kTurns = 20'000;
  const Meeting& meeting = GetParam();
  PlaceLocks locks;
  std::vector<std::array<uint64_t, 2>> words(kTurns);
  std::array<std::vector<uint8_t>, 2> found;
  for (auto& of_thread : found) of_thread.resize(kTurns);
  SideBySide(kTurns, [&](int who, int i) {
    const uint32_t known[1] = {1};
    RaceView view;
    view.block = static_cast<uint32_t>(who) + 1;
    view.generation = 3;
    view.known = known;
    view.own = race_internal::Own(view, false);
    view.summary = PackStamp({1, 0, Accessors::kBlock, false, view.block, view.generation});
    uint64_t of_bytes[8] = {};
    const auto at = static_cast<size_t>(i);
    const RaceWords race = {words[at].data(), of_bytes};
    PlaceSet set;
    set.Add(4 * at);
    PlaceHold hold;
    const Kind kind = who == 0 ? meeting.first : meeting.second;
    if (kind == Kind::kRead && race_internal::IsRecordedRead(race.words, view.own, false, view))
      return;
    hold.Take(&locks, set);
    const RaceConflict conflict = kind == Kind::kRead    ? CheckRead(race, 0xf, view)
                                  : kind == Kind::kWrite ? CheckWrite(race, 0xf, view)
                                                         : CheckAtomic(race, 0xf, view);
    found[static_cast<size_t>(who)][at] = conflict.earlier != 0;
  });
  for (size_t i = 0; i < kTurns; ++i) ASSERT_EQ(found[0][i] + found[1][i], 1) << "turn " << i;
}

INSTANTIATE_TEST_SUITE_P(Cases, RaceMeetingTest,
                         testing::Values(Meeting{"AtomicAndWrite", Kind::kAtomic, Kind::kWrite},
                                         Meeting{"WriteAndWrite", Kind::kWrite, Kind::kWrite},
                                         Meeting{"ReadAndWrite", Kind::kRead, Kind::kWrite}),
                         [](const testing::TestParamInfo<Meeting>& info) {
                           return std::string(info.param.name);
                         });

}  // namespace
}  // namespace assay::emulator
