#include "worker/measure/device_evidence.h"

#include <optional>

#include "assay/v1/evaluation.pb.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

CallTiming Timing(std::optional<DeviceHealth> health, double duration_ns = 10'000,
                  double wall_ns = 15'000) {
  CallTiming timing;
  timing.duration_ns = duration_ns;
  timing.device = DeviceTiming{true, wall_ns, 3'000, health};
  return timing;
}

TEST(DeviceEvidenceTest, TellsThrottlingFromIdleness) {
  const struct {
    uint64_t bits;
    bool throttled;
  } cases[] = {{0, false},
               {0x1, false},
               {0x2, false},
               {0x10, false},
               {0x100, false},
               {0x113, false},
               {0x4, true},
               {0x8, true},
               {0x20, true},
               {0x40, true},
               {0x80, true},
               {0x5, true},
               {uint64_t{1} << 40, true}};
  for (const auto& c : cases) EXPECT_EQ(IsThrottled(c.bits), c.throttled) << c.bits;
}

TEST(DeviceEvidenceTest, CallsAreDisturbedByClocksThatAreOff) {
  DeviceEvidenceLog log;
  // Its first calls ran at a lower clock than its last ten.
  for (int call = 0; call < 30; ++call) {
    log.NoteWarmUp(Timing(DeviceHealth{call < 15 ? 800 : 1000, 1500, 30, 100, 0}));
  }
  const struct {
    int clock_mhz;
    uint64_t bits;
    bool disturbed;
  } cases[] = {{1000, 0, false}, {1029, 0x1, false}, {971, 0, false},
               {1040, 0, true},  {960, 0, true},     {1000, 0x4, true}};
  for (const auto& c : cases) {
    EXPECT_EQ(log.IsDisturbed(Timing(DeviceHealth{c.clock_mhz, 1500, 30, 100, c.bits})),
              c.disturbed)
        << c.clock_mhz << " MHz, " << c.bits;
  }
  EXPECT_FALSE(log.IsDisturbed(Timing(std::nullopt)));
  EXPECT_FALSE(log.IsDisturbed(CallTiming())) << "no device at all";
  CallTiming host_in_it = Timing(std::nullopt);
  host_in_it.device->gated = false;
  EXPECT_TRUE(log.IsDisturbed(host_in_it));
}

TEST(DeviceEvidenceTest, SumsUpWhatItWasTold) {
  DeviceEvidenceLog log;
  log.Note(Timing(DeviceHealth{1000, 1500, 40, 150, 0x1}, 10'000, 15'000), GuestCache::kWarm);
  log.Note(Timing(DeviceHealth{900, 1600, 50, 250.5, 0x4}, 10'000, 17'000), GuestCache::kWarm);
  log.Note(Timing(std::nullopt, 90'000, 20'000), GuestCache::kCold);  // longer than the host saw
  v1::DeviceEvidence evidence;
  log.Fill(3, &evidence);
  EXPECT_EQ(evidence.health_count(), 2);
  EXPECT_EQ(evidence.sm_clock_mhz_min(), 900);
  EXPECT_EQ(evidence.sm_clock_mhz_max(), 1000);
  EXPECT_EQ(evidence.memory_clock_mhz_min(), 1500);
  EXPECT_EQ(evidence.memory_clock_mhz_max(), 1600);
  EXPECT_EQ(evidence.temperature_c_max(), 50);
  EXPECT_EQ(evidence.power_w_max(), 250.5);
  EXPECT_EQ(evidence.throttle_bits(), 0x5u);
  EXPECT_EQ(evidence.disturbed_count(), 3);
  EXPECT_EQ(evidence.wall_ns(), 16'000);
  EXPECT_EQ(evidence.late_ns_max(), 3'000);
  EXPECT_EQ(evidence.timer_disagreement_count(), 1);
}

}  // namespace
}  // namespace assay
