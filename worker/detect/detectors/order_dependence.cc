// Outputs that depend on the order of blocks, warps and lanes. A wrong output in one order and a
// right one in another is a race, or a sum that is not worth its name; different bits within the
// tolerance are how atomic sums of floating point are, and worth knowing.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "assay/internal/v1/runner.pb.h"
#include "assay/v1/evaluation.pb.h"
#include "worker/detect/detector.h"

namespace assay {
namespace {

std::string OrderName(uint64_t order) {
  return order == 0 ? "the natural order" : absl::StrCat("order ", order);
}

std::string Describe(const internal::v1::OrderDependence& found) {
  std::string text = absl::StrFormat(
      "%s[%s] is %.9g in %s and %.9g in %s, for the same inputs (case %s, seed %u); %d of its "
      "elements differ",
      found.tensor(), absl::StrJoin(found.index(), ","), found.first_value(),
      OrderName(found.first_order()), found.other_value(), OrderName(found.other_order()),
      found.input_case(), found.input_seed(), found.differing_count());
  absl::StrAppend(&text, found.wrong() ? "; one of the outputs is wrong"
                                       : "; both outputs are within the tolerance");
  if (!found.replayable()) {
    absl::StrAppend(&text, "; blocks that ran at the same time decided, so it differs by the run");
  }
  return text;
}

class OrderDependenceDetector : public Detector {
 public:
  std::string_view name() const override { return "order_dependence"; }

  std::vector<DetectorFinding> Inspect(const Evidence& evidence) const override {
    std::vector<DetectorFinding> findings;
    for (const internal::v1::RunnerReport* report : evidence.reports) {
      for (const internal::v1::RunnerWorkloadReport& work : report->workloads()) {
        if (!work.has_order_dependence()) continue;
        DetectorFinding finding;
        finding.workload = work.workload();
        finding.evidence = Describe(work.order_dependence());
        finding.severity = v1::Finding::NOTICE;
        if (work.order_dependence().wrong()) {
          finding.severity = work.nondeterministic() ? v1::Finding::PROOF : v1::Finding::NOTICE;
          finding.verdict = v1::NONDETERMINISTIC;
          finding.reason = work.reason();
        }
        findings.push_back(std::move(finding));
      }
    }
    return findings;
  }
};

}  // namespace

std::unique_ptr<Detector> MakeOrderDependenceDetector() {
  return std::make_unique<OrderDependenceDetector>();
}

}  // namespace assay
