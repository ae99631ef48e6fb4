// Calls that left rounding, flushing of subnormals or traps of the processor changed. The guest
// puts them back before every call, so that no other call computes with them; whether the call
// itself was right is told by its outputs. A candidate shares the guest's process and can hide
// this.
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "assay/internal/v1/runner.pb.h"
#include "assay/v1/evaluation.pb.h"
#include "worker/detect/detector.h"
#include "worker/guest/control_block.h"

namespace assay {
namespace {

struct NamedBits {
  uint32_t bits;
  const char* what;
};
constexpr NamedBits kNamed[] = {
    {kFpFlushBits, "subnormal results become zero"},
    {kFpSubnormalsAreZeroBits, "subnormal operands count as zero"},
    {kFpRoundingBits, "rounding"},
    {kFpTrapBits, "floating-point exceptions trap"},
    {kFpX87Bits, "rounding, precision or traps of the x87 unit"},
};

class FpEnvironmentDetector : public Detector {
 public:
  std::string_view name() const override { return "fp_environment"; }

  std::vector<DetectorFinding> Inspect(const Evidence& evidence) const override {
    std::vector<DetectorFinding> findings;
    uint32_t seen = 0;  // of earlier runners and workloads: once is enough
    for (const internal::v1::RunnerReport* report : evidence.reports) {
      for (const internal::v1::RunnerWorkloadReport& work : report->workloads()) {
        const uint32_t bits = work.fp_control_bits() & ~seen;
        if (bits == 0) continue;
        seen |= bits;
        DetectorFinding finding;
        finding.severity = v1::Finding::NOTICE;
        finding.workload = work.workload();
        finding.evidence =
            absl::StrFormat("calls left the floating-point environment changed (bits %#x):", bits);
        const char* separator = " ";
        for (const NamedBits& named : kNamed) {
          if ((bits & named.bits) == 0) continue;
          absl::StrAppend(&finding.evidence, separator, named.what);
          separator = ", ";
        }
        absl::StrAppend(&finding.evidence, "; it was put back before each call");
        findings.push_back(std::move(finding));
      }
    }
    return findings;
  }
};

}  // namespace

std::unique_ptr<Detector> MakeFpEnvironmentDetector() {
  return std::make_unique<FpEnvironmentDetector>();
}

}  // namespace assay
