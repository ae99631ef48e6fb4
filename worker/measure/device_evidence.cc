#include "worker/measure/device_evidence.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "assay/v1/evaluation.pb.h"
#include "worker/backend/cuda/nvml.h"
#include "worker/measure/statistics.h"

namespace assay {
namespace {

constexpr uint64_t kHarmlessBits =
    kThrottleIdle | kThrottleApplicationClocks | kThrottleSyncBoost | kThrottleDisplayClock;
constexpr double kClockRatioMax = 0.03;
constexpr size_t kWarmUpClocks = 10;
// What an event may be off, and a clock may drift against another.
constexpr double kTimerSlackNs = 2'000;
constexpr double kTimerSlackRatio = 0.01;

}  // namespace

bool IsThrottled(uint64_t throttle_bits) { return (throttle_bits & ~kHarmlessBits) != 0; }

void DeviceEvidenceLog::NoteWarmUp(const CallTiming& timing) {
  if (!timing.device.has_value() || !timing.device->health.has_value()) return;
  warmup_clocks_mhz_.push_back(timing.device->health->sm_clock_mhz);
  if (warmup_clocks_mhz_.size() > kWarmUpClocks) {
    warmup_clocks_mhz_.erase(warmup_clocks_mhz_.begin());
  }
}

void DeviceEvidenceLog::Note(const CallTiming& timing, GuestCache cache) {
  if (!timing.device.has_value()) return;
  const DeviceTiming& device = *timing.device;
  if (device.health.has_value()) healths_.push_back(*device.health);
  if (cache == GuestCache::kWarm) walls_ns_.push_back(device.wall_ns);
  late_ns_max_ = std::max(late_ns_max_, device.late_ns);
  if (timing.duration_ns > (1 + kTimerSlackRatio) * device.wall_ns + kTimerSlackNs) {
    ++timer_disagreements_;
  }
}

bool DeviceEvidenceLog::IsDisturbed(const CallTiming& timing) const {
  if (!timing.device.has_value()) return false;
  if (!timing.device->gated) return true;
  if (!timing.device->health.has_value()) return false;
  if (IsThrottled(timing.device->health->throttle_bits)) return true;
  const double expected = Median(warmup_clocks_mhz_);
  return expected > 0 &&
         std::abs(timing.device->health->sm_clock_mhz - expected) > kClockRatioMax * expected;
}

void DeviceEvidenceLog::Fill(int kept, v1::DeviceEvidence* evidence) const {
  evidence->set_disturbed_count(kept);
  evidence->set_wall_ns(Median(walls_ns_));
  evidence->set_late_ns_max(late_ns_max_);
  evidence->set_timer_disagreement_count(timer_disagreements_);
  evidence->set_health_count(static_cast<int32_t>(healths_.size()));
  if (healths_.empty()) return;
  const auto [sm_low, sm_high] = std::minmax_element(
      healths_.begin(), healths_.end(),
      [](const DeviceHealth& a, const DeviceHealth& b) { return a.sm_clock_mhz < b.sm_clock_mhz; });
  evidence->set_sm_clock_mhz_min(sm_low->sm_clock_mhz);
  evidence->set_sm_clock_mhz_max(sm_high->sm_clock_mhz);
  const auto [memory_low, memory_high] = std::minmax_element(
      healths_.begin(), healths_.end(), [](const DeviceHealth& a, const DeviceHealth& b) {
        return a.memory_clock_mhz < b.memory_clock_mhz;
      });
  evidence->set_memory_clock_mhz_min(memory_low->memory_clock_mhz);
  evidence->set_memory_clock_mhz_max(memory_high->memory_clock_mhz);
  uint64_t bits = 0;
  for (const DeviceHealth& health : healths_) {
    bits |= health.throttle_bits;
    evidence->set_temperature_c_max(std::max(evidence->temperature_c_max(), health.temperature_c));
    evidence->set_power_w_max(std::max(evidence->power_w_max(), health.power_w));
  }
  evidence->set_throttle_bits(bits);
}

}  // namespace assay
