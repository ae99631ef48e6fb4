// Runs the simulation over many seeds.
//   ASSAY_SIM_SEED=N   runs this seed only and prints what happens
//   ASSAY_SIM_SEEDS=N  runs the seeds 1 to N (2000 by default)
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "gtest/gtest.h"
#include "tests/simulation/world.h"

namespace assay::simulation {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// The coordinator logs every failed write; over all seeds that would be megabytes.
class QuietStandardError {
 public:
  QuietStandardError() : saved_(dup(2)) {
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(null, 2);
    close(null);
  }
  ~QuietStandardError() {
    dup2(saved_, 2);
    close(saved_);
  }

 private:
  const int saved_;
};

std::string Join(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += "  " + line + "\n";
  return out;
}

TEST(SimulationTest, InvariantsHoldOverAllSeeds) {
  if (const uint64_t seed = FromEnvironment("ASSAY_SIM_SEED", 0); seed != 0) {
    World world(seed, /*verbose=*/true);
    world.Run();
    EXPECT_TRUE(world.violations().empty()) << Join(world.violations());
    return;
  }
  const uint64_t seed_count = FromEnvironment("ASSAY_SIM_SEEDS", 2000);
  World::Tally total;
  uint64_t events = 0;
  int bad = 0;
  {
    QuietStandardError quiet;
    for (uint64_t seed = 1; seed <= seed_count && bad < 5; ++seed) {
      World world(seed, /*verbose=*/false);
      world.Run();
      events += world.event_count();
      total.created += world.tally().created;
      total.succeeded += world.tally().succeeded;
      total.failed += world.tally().failed;
      total.cancelled += world.tally().cancelled;
      total.server_crashes += world.tally().server_crashes;
      total.worker_crashes += world.tally().worker_crashes;
      total.confirmations += world.tally().confirmations;
      total.elsewhere += world.tally().elsewhere;
      total.same_worker += world.tally().same_worker;
      if (world.violations().empty()) continue;
      ++bad;
      ADD_FAILURE() << "seed " << seed << ":\n"
                    << Join(world.violations()) << "replay with ASSAY_SIM_SEED=" << seed;
    }
  }
  std::printf(
      "%d evaluations: %d succeeded, %d failed, %d cancelled; %d second runs, leased %d times to "
      "another worker and %d times to the same; %d coordinator and %d worker crashes; %llu events "
      "in %llu seeds\n",
      total.created, total.succeeded, total.failed, total.cancelled, total.confirmations,
      total.elsewhere, total.same_worker, total.server_crashes, total.worker_crashes,
      static_cast<unsigned long long>(events), static_cast<unsigned long long>(seed_count));
  if (bad > 0 || seed_count < 200) return;
  // A simulation in which nothing happens proves nothing.
  EXPECT_GT(total.succeeded, total.created / 2);
  EXPECT_GT(total.failed, 0);
  EXPECT_GT(total.cancelled, 0);
  EXPECT_GT(total.confirmations, static_cast<int>(seed_count));
  EXPECT_GT(total.elsewhere, total.confirmations / 4);
  EXPECT_GT(total.same_worker, 0);
  EXPECT_GT(total.server_crashes, static_cast<int>(seed_count) / 2);
  EXPECT_GT(total.worker_crashes, static_cast<int>(seed_count) / 2);
}

TEST(SimulationTest, OneSeedIsOneRun) {
  QuietStandardError quiet;
  World first(77, false);
  World second(77, false);
  first.Run();
  second.Run();
  EXPECT_EQ(first.event_count(), second.event_count());
  EXPECT_EQ(first.tally().succeeded, second.tally().succeeded);
}

}  // namespace
}  // namespace assay::simulation
