// A candidate that does something else when the device's clocks show something else: the way to
// stall a warm-up, or to tell a timed call from a checked one.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "assay/internal/v1/runner.pb.h"
#include "assay/v1/evaluation.pb.h"
#include "worker/detect/detector.h"

namespace assay {
namespace {

class ClockDependenceDetector : public Detector {
 public:
  std::string_view name() const override { return "clock_dependence"; }

  std::vector<DetectorFinding> Inspect(const Evidence& evidence) const override {
    std::vector<DetectorFinding> findings;
    for (const internal::v1::RunnerReport* report : evidence.reports) {
      for (const internal::v1::RunnerWorkloadReport& work : report->workloads()) {
        if (!work.has_clock_dependence()) continue;
        const internal::v1::ClockDependence& found = work.clock_dependence();
        DetectorFinding finding;
        finding.workload = work.workload();
        finding.severity = v1::Finding::SUSPECT;
        std::string ending = "both outputs are right";
        if (found.reason() == "TIMED_OUT") {
          ending = "the second did not come to an end";
        } else if (!found.reason().empty()) {
          ending = absl::StrCat("the second's output is wrong (", found.reason(), ")");
          finding.severity = v1::Finding::PROOF;
          finding.verdict = v1::GAMED;
          finding.reason = "CLOCK_DEPENDENT";
        }
        finding.evidence = absl::StrFormat(
            "two calls that differ in nothing but the clocks (case %s, seed %u): %d thread "
            "instructions, and %d where clocks show %u ticks an operation from %u on; %s",
            found.input_case(), found.input_seed(), found.thread_instructions(),
            found.other_thread_instructions(), found.clock_rate(), found.clock_offset(), ending);
        findings.push_back(std::move(finding));
      }
    }
    return findings;
  }
};

}  // namespace

std::unique_ptr<Detector> MakeClockDependenceDetector() {
  return std::make_unique<ClockDependenceDetector>();
}

}  // namespace assay
