// Launches of a plan that change nothing: decoys that make a plan look like what it does not do. A
// launch that some shape needs is none, so that one is suspect only where every workload of the
// problem was looked at.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_format.h"
#include "assay/internal/v1/runner.pb.h"
#include "assay/v1/evaluation.pb.h"
#include "assay/v1/problem.pb.h"
#include "worker/detect/detector.h"

namespace assay {
namespace {

struct Idle {
  std::set<std::string> workloads;
  const internal::v1::KnockedOutLaunch* first = nullptr;
};

// Whether no workload of the problem is left that may need the launch.
bool IsAll(const std::set<std::string>& looked_at, const v1::Problem* problem) {
  return problem != nullptr && std::all_of(problem->workloads().begin(), problem->workloads().end(),
                                           [&](const v1::Workload& workload) {
                                             return looked_at.count(workload.name()) > 0;
                                           });
}

class IdleLaunchDetector : public Detector {
 public:
  std::string_view name() const override { return "idle_launch"; }

  std::vector<DetectorFinding> Inspect(const Evidence& evidence) const override {
    std::set<std::string> verified;
    std::set<std::string> looked_at;  // on an emulated device, which counts what it did
    std::map<int, Idle> idle;         // by the launch's number
    for (const internal::v1::RunnerReport* report : evidence.reports) {
      for (const internal::v1::RunnerWorkloadReport& work : report->workloads()) {
        verified.insert(work.workload());
        if (work.has_observed()) looked_at.insert(work.workload());
        for (const internal::v1::KnockedOutLaunch& launch : work.idle_launches()) {
          Idle& known = idle[launch.launch()];
          known.workloads.insert(work.workload());
          if (known.first == nullptr) known.first = &launch;
        }
      }
    }
    std::vector<DetectorFinding> findings;
    for (const auto& [number, known] : idle) {
      if (known.workloads != looked_at) continue;
      DetectorFinding finding;
      const bool all = looked_at == verified && IsAll(looked_at, evidence.problem);
      finding.severity = all ? v1::Finding::SUSPECT : v1::Finding::NOTICE;
      finding.workload = *known.workloads.begin();
      finding.evidence = absl::StrFormat(
          "launch %d of the plan, kernel %s, does nothing%s: without it every output has the same "
          "bits in each of %d workloads and all their input cases, %d were not looked at (in this "
          "one with seed %u)",
          number, known.first->kernel(), all ? "" : ", unless other workloads need it",
          known.workloads.size(), verified.size() - looked_at.size(), known.first->input_seed());
      findings.push_back(std::move(finding));
    }
    return findings;
  }
};

}  // namespace

std::unique_ptr<Detector> MakeIdleLaunchDetector() {
  return std::make_unique<IdleLaunchDetector>();
}

}  // namespace assay
