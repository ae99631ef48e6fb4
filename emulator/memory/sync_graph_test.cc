// What a sync graph orders, and that it takes no more memory than its budget has.
#include "emulator/memory/sync_graph.h"

#include <malloc.h>

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace assay::emulator {
namespace {

constexpr uint64_t kPlenty = uint64_t{1} << 30;

uint64_t Address(uint32_t i) { return 0x1000 + uint64_t{4} * i; }

// Block `block` scatters fenced atomics over `count` locations of its own.
void Scatter(SyncGraph* graph, uint32_t block, uint32_t count) {
  const std::vector<uint32_t> known(4, 1);
  for (uint32_t i = 0; i < count; ++i) {
    graph->Release(Address(block * count + i), block, known);
    graph->Acquire(Address(block * count + i), block);
  }
}

TEST(SyncGraphTest, OrdersWhatWasReleasedAndAcquired) {
  SyncBudget budget(kPlenty);
  SyncGraph graph(&budget);
  EXPECT_TRUE(graph.empty());
  graph.Release(Address(0), 1, std::vector<uint32_t>{5, 2});
  EXPECT_FALSE(graph.empty());
  EXPECT_FALSE(graph.IsOrdered(1, 0, 5, 2));
  graph.Acquire(Address(0), 2);
  EXPECT_TRUE(graph.IsOrdered(1, 0, 5, 2));
  EXPECT_FALSE(graph.IsOrdered(1, 1, 5, 2)) << "of warp 1 only clock 2 was known";
  EXPECT_FALSE(graph.IsOrdered(2, 0, 1, 1));
  graph.Release(Address(1), 2, std::vector<uint32_t>{3});
  graph.Acquire(Address(1), 3);
  EXPECT_TRUE(graph.IsOrdered(1, 0, 5, 3)) << "by way of block 2";
  EXPECT_FALSE(graph.IsOrdered(1, 0, 6, 3));
}

TEST(SyncGraphTest, CountsEverythingAsOrderedWhenTheBudgetIsUsedUp) {
  SyncBudget budget(100'000);
  SyncGraph graph(&budget);
  Scatter(&graph, 1, 10);
  EXPECT_FALSE(graph.IsOrdered(1, 0, 1, 2));
  const uint64_t left = budget.left();
  EXPECT_LT(left, 100'000u);
  Scatter(&graph, 2, 1000);
  EXPECT_TRUE(graph.IsOrdered(1, 0, 1, 2));
  EXPECT_TRUE(graph.IsOrdered(7, 3, 1000, 8)) << "nobody knows";
  EXPECT_FALSE(graph.empty()) << "it must be asked";
  EXPECT_EQ(budget.left(), 100'000u) << "what is not looked at any more is not kept";
  Scatter(&graph, 3, 1000);
  EXPECT_EQ(budget.left(), 100'000u);
  graph.Clear();
  EXPECT_TRUE(graph.empty());
  Scatter(&graph, 1, 10);
  EXPECT_EQ(budget.left(), left);
  EXPECT_FALSE(graph.IsOrdered(1, 0, 1, 2)) << "a cleared graph begins anew";
}

TEST(SyncGraphTest, SharesItsBudgetAndGivesItBack) {
  SyncBudget budget(1'000'000);
  {
    SyncGraph first(&budget);
    SyncGraph second(&budget);
    Scatter(&first, 1, 150);
    Scatter(&second, 1, 150);
    EXPECT_FALSE(second.IsOrdered(1, 0, 1, 2));
    Scatter(&second, 2, 1000);
    EXPECT_TRUE(second.IsOrdered(1, 0, 1, 2));
    EXPECT_FALSE(first.IsOrdered(1, 0, 1, 2)) << "the other goes on";
  }
  EXPECT_EQ(budget.left(), 1'000'000u);
}

// A block that only acquires holds one set, however many it had before.
TEST(SyncGraphTest, DoesNotPayForWhatNobodyHoldsAnyMore) {
  constexpr uint32_t kCount = 1000;
  SyncBudget budget(kPlenty);
  SyncGraph graph(&budget);
  const std::vector<uint32_t> known(4, 1);
  for (uint32_t i = 0; i < kCount; ++i) graph.Release(Address(i), 1, known);
  const uint64_t before = budget.left();
  for (uint32_t i = 0; i < kCount; ++i) graph.Acquire(Address(i), 2);
  EXPECT_GE(budget.left() + kCount * 20, before);
}

// As the allocator counts; it counts nothing under a sanitizer.
uint64_t HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

TEST(SyncGraphTest, TakesNoMoreOfTheHeapThanItPaysFor) {
  struct Shape {
    uint32_t blocks;
    uint32_t locations;
    size_t warps;
  };
  for (const Shape& shape : {Shape{1, 2000, 1}, Shape{2000, 1, 1}, Shape{50, 40, 32}}) {
    SCOPED_TRACE(testing::Message() << shape.blocks << " blocks");
    SyncBudget budget(kPlenty);
    const uint64_t before = HeapBytes();
    SyncGraph graph(&budget);
    const std::vector<uint32_t> known(shape.warps, 1);
    for (uint32_t block = 0; block < shape.blocks; ++block) {
      for (uint32_t i = 0; i < shape.locations; ++i) {
        // Every other release is of a location that all blocks share.
        const uint32_t place = i % 2 == 0 ? 0 : block * shape.locations + i;
        graph.Release(Address(place), block, known);
        graph.Acquire(Address(place), block);
      }
    }
    EXPECT_LE(HeapBytes() - before, kPlenty - budget.left());
    EXPECT_LT(budget.left(), kPlenty);
  }
}

}  // namespace
}  // namespace assay::emulator
