#include "store/confirmation.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/limits.h"
#include "base/strings.h"
#include "store/records.h"
#include "store/transitions.h"

namespace assay {
namespace {

constexpr double kSlowerRatioMax = 0.05;
constexpr double kSlowerHandshakesMax = 5;
// Before everything that clients may ask for, so that a board waits for one run and no more.
constexpr int kPriority = 100;

bool IsMeasured(const v1::WorkloadResult& result) {
  const double median_ns = result.measurement().median_ns();
  return std::isfinite(median_ns) && median_ns > 0;
}

double Spread(const v1::Measurement& measurement) {
  const double ratio = measurement.runner_spread_ratio();
  return std::isfinite(ratio) && ratio > 0 ? std::min(ratio, 1.0) : 0;
}

bool IsMuchSlower(const v1::Measurement& first, const v1::Measurement& second) {
  const double slower_ns = second.median_ns() - first.median_ns();
  const double handshake_ns = std::max(first.handshake_ns(), second.handshake_ns());
  if (slower_ns <= kSlowerRatioMax * first.median_ns()) return false;
  if (slower_ns <= kSlowerHandshakesMax * handshake_ns) return false;
  const double first_high_ns =
      std::max(first.warm().q3_ns(), first.median_ns() * (1 + Spread(first)));
  double second_low_ns = second.median_ns() * (1 - Spread(second));
  if (second.warm().q1_ns() > 0) second_low_ns = std::min(second_low_ns, second.warm().q1_ns());
  return second_low_ns > first_high_ns;
}

// Verdicts that blame the problem, the worker or the request, not the candidate.
bool SaysNothing(v1::Verdict verdict) {
  return verdict == v1::INVALID_PROBLEM || verdict == v1::UNSUPPORTED ||
         verdict == v1::VERDICT_UNSPECIFIED;
}

Agreement Compare(const v1::WorkloadResult& first, const v1::Outcome& second, double* second_ns) {
  if (SaysNothing(second.verdict())) return Agreement::kUnknown;
  if (second.verdict() != v1::PASSED || IsSuspect(second)) return Agreement::kContradicts;
  for (const v1::WorkloadResult& result : second.workload_results()) {
    if (result.workload() != first.workload() || !IsMeasured(result)) continue;
    *second_ns = result.measurement().median_ns();
    return IsMuchSlower(first.measurement(), result.measurement()) ? Agreement::kContradicts
                                                                   : Agreement::kAgrees;
  }
  return Agreement::kUnknown;
}

}  // namespace

bool CountsForRanks(const v1::Evaluation& evaluation) {
  return evaluation.level() == v1::RANKED && evaluation.confirms().empty() &&
         evaluation.replay_of().empty();
}

std::string ConfirmationName(std::string_view evaluation) {
  return absl::StrCat(Av(evaluation), "-confirmation");
}

v1::Evaluation MakeConfirmation(const v1::Evaluation& first, std::string_view device_class,
                                absl::Time time) {
  v1::Evaluation second;
  second.set_name(ConfirmationName(first.name()));
  second.set_confirms(first.name());
  second.set_candidate(first.candidate());
  second.set_candidate_label(first.candidate_label());
  second.set_problem(first.problem());
  *second.mutable_workloads() = first.workloads();
  *second.mutable_configuration() = first.configuration();
  second.set_device_class(std::string(device_class));
  second.set_level(first.level());
  second.set_priority(kPriority);
  second.set_creator(first.creator());
  second.set_state(v1::QUEUED);
  *second.mutable_create_time() = ToTimestamp(time);
  InitializeEvaluation(&second);
  return second;
}

std::vector<WorkloadAgreement> CompareRuns(const v1::Outcome& first, const v1::Outcome& second) {
  std::vector<WorkloadAgreement> agreements;
  for (const v1::WorkloadResult& result : first.workload_results()) {
    if (!IsMeasured(result)) continue;
    WorkloadAgreement& one = agreements.emplace_back();
    one.workload = result.workload();
    one.first_ns = result.measurement().median_ns();
    one.agreement = Compare(result, second, &one.second_ns);
  }
  return agreements;
}

std::string DisputeNote(std::string_view confirmation, const v1::Outcome& second,
                        const std::vector<WorkloadAgreement>& agreements) {
  std::string note;
  for (const WorkloadAgreement& one : agreements) {
    if (one.agreement != Agreement::kContradicts) continue;
    absl::StrAppend(&note, note.empty() ? "" : "; ", one.workload);
    if (one.second_ns > 0) {
      absl::StrAppendFormat(&note, " took %.0f ns here and %.0f ns there", one.first_ns,
                            one.second_ns);
    }
    if (note.size() > limits::kNameBytesMax * 4) break;  // the rest is in the second run
  }
  if (note.empty()) return "";
  std::string why = "was slower than noise explains";
  if (second.verdict() != v1::PASSED) {
    why = absl::StrCat("was judged ", v1::Verdict_Name(second.verdict()), " ", second.reason());
  } else if (IsSuspect(second)) {
    why = "left a suspicion";
  }
  return absl::StrCat("Not ranked: the second run, ", Av(confirmation), ", ", why, " (", note,
                      "). Submit again for another try.");
}

std::string OpenNote(const v1::Evaluation& second,
                     const std::vector<WorkloadAgreement>& agreements) {
  std::string end;
  switch (second.state()) {
    case v1::FAILED: {
      const v1::ErrorDetail& error = second.infrastructure_error();
      end = absl::StrCat("failed ", second.attempt_count(), " times, last with ",
                         error.reason().empty() ? error.code() : error.reason());
      break;
    }
    case v1::CANCELLED:
      end = "was cancelled";
      break;
    case v1::SUCCEEDED:
      for (const WorkloadAgreement& one : agreements) {
        if (one.agreement != Agreement::kUnknown) return "";
      }
      end = absl::StrCat("was judged ", v1::Verdict_Name(second.outcome().verdict()), " ",
                         second.outcome().reason(), ", which says nothing of it");
      break;
    default:
      return "";
  }
  return absl::StrCat("Not confirmed: the second run, ", second.name(), ", ", end,
                      ". Submit again for another try.");
}

}  // namespace assay
