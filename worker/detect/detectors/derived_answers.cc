// Content derived from an earlier one was answered faster than new content. The runner then counts
// only calls on new content, so the time is right; why there is a difference is for people to
// judge. Far apart it is an answer derived from an earlier one; closer together it may be a
// processor that remembers the branches of the earlier content, as in a selection: a branch that it
// foretells costs a cycle or two, another one some twenty. An honest topk was 4.3 times slower on
// new content.
#include "absl/strings/str_format.h"
#include "assay/internal/v1/runner.pb.h"
#include "assay/v1/evaluation.pb.h"
#include "worker/detect/detector.h"

namespace assay {
namespace {

constexpr double kSuspectRatio = 12;

class DerivedAnswersDetector : public Detector {
 public:
  std::string_view name() const override { return "derived_answers"; }

  std::vector<DetectorFinding> Inspect(const Evidence& evidence) const override {
    std::vector<DetectorFinding> findings;
    for (const internal::v1::RunnerReport* report : evidence.reports) {
      for (const internal::v1::RunnerWorkloadReport& work : report->workloads()) {
        if (work.derived_ns() <= 0) continue;
        DetectorFinding finding;
        finding.severity = work.new_base_ns() >= kSuspectRatio * work.derived_ns()
                               ? v1::Finding::SUSPECT
                               : v1::Finding::NOTICE;
        finding.workload = work.workload();
        finding.evidence = absl::StrFormat(
            "%.0f ns (median) on new content, %.0f ns on content derived from an earlier one by "
            "transforms of the problem; only new content counts",
            work.new_base_ns(), work.derived_ns());
        findings.push_back(std::move(finding));
      }
    }
    return findings;
  }
};

}  // namespace

std::unique_ptr<Detector> MakeDerivedAnswersDetector() {
  return std::make_unique<DerivedAnswersDetector>();
}

}  // namespace assay
