// Module-scope variables that carry something from call to call when nobody puts them back: the
// answer to earlier content, the number of the call, or work that a later call then saves.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "assay/internal/v1/runner.pb.h"
#include "assay/v1/evaluation.pb.h"
#include "worker/detect/detector.h"

namespace assay {
namespace {

using internal::v1::CarriedState;

void Prove(const char* reason, DetectorFinding* finding) {
  finding->severity = v1::Finding::PROOF;
  finding->verdict = v1::GAMED;
  finding->reason = reason;
}

// What the calls showed, and what it is worth.
void Judge(const CarriedState& found, DetectorFinding* finding) {
  const std::string call = absl::StrCat("call ", found.call());
  std::string what;
  switch (found.kind()) {
    case CarriedState::STALE_ANSWER:
      Prove("STALE_OUTPUT", finding);
      what = absl::StrCat(call, " gave the answer to the content of call ", found.earlier_call());
      break;
    case CarriedState::WRONG_LATER:
      Prove("PHASE_DEPENDENT", finding);
      what = absl::StrCat("the calls before ", call, " were right, and it was wrong (",
                          found.reason(), "); no single earlier call makes it so");
      break;
    case CarriedState::LESS_WORK:
      Prove("WORK_CARRIED", finding);
      what = absl::StrCat(call,
                          " did less than the same call from the first image, by what it kept of "
                          "earlier content");
      break;
    case CarriedState::KEPT_CONSTANTS:
      finding->severity = v1::Finding::NOTICE;
      what = absl::StrCat(call,
                          " did less than the same call from the first image, on content that has "
                          "nothing to do with earlier ones: a table, which every call that counts "
                          "makes anew");
      break;
    case CarriedState::OTHER_BITS:
      finding->severity = v1::Finding::NOTICE;
      what = absl::StrCat(call, " was right, with other bits than from the first image");
      break;
    case CarriedState::NEEDS_RESET:
      finding->severity = v1::Finding::NOTICE;
      what = absl::StrCat(call, " was wrong (", found.reason(),
                          "): it relies on its variables being put back, which is done before "
                          "every call that counts");
      break;
    default:
      finding->severity = v1::Finding::SUSPECT;
      what = absl::StrCat(call, " was right, and did more than the same call from the first image");
      break;
  }
  finding->evidence = absl::StrFormat(
      "without putting its variables back, on fresh content every time (case %s, seed %u), %s; "
      "%d thread instructions as it stood, %d from the first image",
      found.input_case(), found.input_seed(), what, found.thread_instructions(),
      found.fresh_thread_instructions());
}

class CarriedStateDetector : public Detector {
 public:
  std::string_view name() const override { return "carried_state"; }

  std::vector<DetectorFinding> Inspect(const Evidence& evidence) const override {
    std::vector<DetectorFinding> findings;
    for (const internal::v1::RunnerReport* report : evidence.reports) {
      for (const internal::v1::RunnerWorkloadReport& work : report->workloads()) {
        if (!work.has_carried_state()) continue;
        DetectorFinding finding;
        finding.workload = work.workload();
        Judge(work.carried_state(), &finding);
        findings.push_back(std::move(finding));
      }
    }
    return findings;
  }
};

}  // namespace

std::unique_ptr<Detector> MakeCarriedStateDetector() {
  return std::make_unique<CarriedStateDetector>();
}

}  // namespace assay
