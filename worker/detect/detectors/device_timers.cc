// Times of a device that its two clocks do not agree on: events around the launches, and the host's
// clock around all of it.
#include "absl/strings/str_format.h"
#include "assay/v1/evaluation.pb.h"
#include "worker/detect/detector.h"
#include "worker/measure/statistics.h"

namespace assay {
namespace {

// What the host needs to release a call and to see its end, generously.
constexpr double kHostShareNs = 100'000;
constexpr double kWallRatioMax = 1.5;

class DeviceTimersDetector : public Detector {
 public:
  std::string_view name() const override { return "device_timers"; }

  std::vector<DetectorFinding> Inspect(const Evidence& evidence) const override {
    std::vector<DetectorFinding> findings;
    for (const v1::WorkloadResult* result : evidence.results) {
      for (const v1::RunnerSamples& runner : result->measurement().runners()) {
        if (!runner.has_device()) continue;
        const v1::DeviceEvidence& device = runner.device();
        const double event_ns =
            Median(std::vector<double>(runner.warm_ns().begin(), runner.warm_ns().end()));
        DetectorFinding finding;
        finding.severity = v1::Finding::SUSPECT;
        finding.workload = result->workload();
        if (device.timer_disagreement_count() > 0) {
          finding.evidence = absl::StrFormat(
              "%d calls took longer by the device's events than by the host's clock",
              device.timer_disagreement_count());
        } else if (device.wall_ns() > kWallRatioMax * event_ns + kHostShareNs) {
          finding.evidence = absl::StrFormat(
              "%.0f ns by the device's events, %.0f ns by the host's clock (medians)", event_ns,
              device.wall_ns());
        } else {
          continue;
        }
        findings.push_back(std::move(finding));
      }
    }
    return findings;
  }
};

}  // namespace

std::unique_ptr<Detector> MakeDeviceTimersDetector() {
  return std::make_unique<DeviceTimersDetector>();
}

}  // namespace assay
