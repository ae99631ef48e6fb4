// Arithmetic below the contract that the tolerance lets pass: outputs whose last bits are all zero,
// sums of integers that are not exact, errors beyond those of honest arithmetic. Never more than a
// suspicion, for the tolerance alone says what is right.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "assay/internal/v1/runner.pb.h"
#include "assay/v1/evaluation.pb.h"
#include "assay/v1/problem.pb.h"
#include "kernels/problem.h"
#include "worker/detect/detector.h"
#include "worker/verify/precision.h"

namespace assay {
namespace {

// Fewer may be the grain of the values.
constexpr int kZeroBitsMin = 4;

struct Observation {
  std::string workload;
  const internal::v1::PrecisionEvidence* evidence = nullptr;
};

// The bound in this workload; infinite where it is not known.
double BoundOf(const Evidence& evidence, const std::string& name) {
  if (evidence.problem == nullptr) return HonestErrorMax(v1::Problem(), {});
  for (const v1::WorkloadResult* result : evidence.results) {
    if (result->workload() != name) continue;
    v1::Workload workload;
    workload.set_name(name);
    *workload.mutable_axes() = result->axes();
    const auto resolved = ResolveWorkload(*evidence.problem, workload);
    if (resolved.ok()) return HonestErrorMax(*evidence.problem, *resolved);
  }
  return HonestErrorMax(v1::Problem(), {});
}

// How the error changes from the workload where it is least to that where it is most.
std::string Growth(const std::vector<Observation>& all, const std::string& tensor) {
  const Observation* least = nullptr;
  const Observation* most = nullptr;
  for (const Observation& one : all) {
    if (one.evidence->tensor() != tensor || one.evidence->input_case() != "x1") continue;
    const double error = one.evidence->relative_l2();
    if (least == nullptr || error < least->evidence->relative_l2()) least = &one;
    if (most == nullptr || error > most->evidence->relative_l2()) most = &one;
  }
  if (least == nullptr || least == most) return "";
  return absl::StrFormat("; over the workloads it goes from %.2g (%s) to %.2g (%s)",
                         least->evidence->relative_l2(), least->workload,
                         most->evidence->relative_l2(), most->workload);
}

std::string DescribeZeroBits(const internal::v1::PrecisionEvidence& seen) {
  return absl::StrCat("the last ", seen.zero_trailing_bits(), " mantissa bits of every element of ",
                      seen.tensor(), " (", seen.element_count(),
                      ") are zero, and those of the right results are not: the output, or what it "
                      "is made of, was rounded to a narrower type");
}

std::string DescribeInexact(const internal::v1::PrecisionEvidence& seen) {
  return absl::StrFormat(
      "%d of %d elements of %s are not exact on integers for which every product and sum is exact "
      "in the contract's types (relative L2 %.2g): operands or sums have fewer bits",
      seen.inexact_count(), seen.element_count(), seen.tensor(), seen.relative_l2());
}

class PrecisionDowngradeDetector : public Detector {
 public:
  std::string_view name() const override { return "precision_downgrade"; }

  std::vector<DetectorFinding> Inspect(const Evidence& evidence) const override {
    std::vector<Observation> all;
    for (const internal::v1::RunnerReport* report : evidence.reports) {
      for (const internal::v1::RunnerWorkloadReport& work : report->workloads()) {
        for (const auto& seen : work.precision()) all.push_back({work.workload(), &seen});
      }
    }
    // Of each output and each kind the first, which is enough.
    std::map<std::string, DetectorFinding> found;
    for (const Observation& one : all) {
      const internal::v1::PrecisionEvidence& seen = *one.evidence;
      const auto add = [&](const char* kind, const std::string& text) {
        DetectorFinding finding;
        finding.severity = v1::Finding::SUSPECT;
        finding.workload = one.workload;
        finding.evidence = absl::StrCat(text, " (case ", seen.input_case(), ")");
        found.emplace(absl::StrCat(seen.tensor(), " ", kind), std::move(finding));
      };
      const int zeros =
          evidence.problem == nullptr
              ? kZeroBitsMin - 1
              : std::max(kZeroBitsMin - 1, HonestZeroBitsMax(*evidence.problem, seen.tensor()));
      if (seen.zero_trailing_bits() > zeros) add("bits", DescribeZeroBits(seen));
      if (seen.inexact_count() > 0) add("exact", DescribeInexact(seen));
      if (seen.input_case() != "x1") continue;
      const double bound = BoundOf(evidence, one.workload);
      if (!(seen.relative_l2() > bound)) continue;
      add("error",
          absl::StrFormat("relative L2 error %.2g of %s, where honest arithmetic under the "
                          "contract stays below %.2g%s",
                          seen.relative_l2(), seen.tensor(), bound, Growth(all, seen.tensor())));
    }
    std::vector<DetectorFinding> findings;
    for (auto& [key, finding] : found) findings.push_back(std::move(finding));
    return findings;
  }
};

}  // namespace

std::unique_ptr<Detector> MakePrecisionDowngradeDetector() {
  return std::make_unique<PrecisionDowngradeDetector>();
}

}  // namespace assay
