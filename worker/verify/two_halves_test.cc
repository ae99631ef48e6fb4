#include "worker/verify/two_halves.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>
#include <vector>

namespace assay {
namespace {

int FirstCore() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0) return -1;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &cores)) return core;
  }
  return -1;
}

TEST(TwoHalvesTest, RunsBothAndReturnsAfterThem) {
  for (const int core : {-1, FirstCore()}) {
    SCOPED_TRACE(core);
    TwoHalves halves(core);
    std::vector<int> runs(2);
    for (int i = 1; i <= 1000; ++i) {
      halves.Run([&](int half) { ++runs[half]; });
      ASSERT_EQ(runs, std::vector<int>({i, i}));
    }
  }
}

TEST(TwoHalvesTest, TheHelperTakesTheSecondHalfOnItsCore) {
  const int core = FirstCore();
  if (core < 0) GTEST_SKIP() << "the machine tells no cores";
  TwoHalves halves(core);
  std::thread::id threads[2];
  int helper_core = -1;
  halves.Run([&](int half) {
    threads[half] = std::this_thread::get_id();
    if (half == 1) helper_core = sched_getcpu();
  });
  EXPECT_EQ(threads[0], std::this_thread::get_id());
  EXPECT_NE(threads[1], std::this_thread::get_id());
  EXPECT_EQ(helper_core, core);
}

TEST(TwoHalvesTest, WithoutAHelperAllRunsHere) {
  TwoHalves halves(-1);
  std::vector<int> order;
  halves.Run([&](int half) { order.push_back(half); });
  EXPECT_EQ(order, std::vector<int>({0, 1}));
}

}  // namespace
}  // namespace assay
