#include "client/audit/work_model.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "assay/v1/evaluation.pb.h"
#include "base/status.h"
#include "kernels/problem.h"

namespace assay {
namespace {

constexpr double kOperationsFactor = 8;  // between declared and counted operations
constexpr double kOperationsTold = 1e4;  // below it, what every block does once is most of it

// Of one workload.
struct Counted {
  double declared = 0;
  double least = std::numeric_limits<double>::infinity();
  std::string by;  // candidate
};

absl::StatusOr<WorkCost> CostOf(const v1::Problem& problem, const std::string& workload) {
  v1::WorkloadSelector selector;
  selector.set_name(workload);
  ASSAY_ASSIGN_OR_RETURN(const ResolvedWorkload resolved, ResolveSelector(problem, selector));
  return ComputeWorkCost(problem, resolved);
}

bool IsTimed(const v1::Problem& problem, const std::string& name) {
  return std::any_of(problem.workloads().begin(), problem.workloads().end(),
                     [&](const v1::Workload& workload) {
                       return workload.name() == name && !workload.verify_only();
                     });
}

double Operations(const v1::Problem& problem, const v1::ObservedWork& seen) {
  const bool integer = problem.work().unit() == v1::WorkModel::OP_INT8;
  return static_cast<double>(integer ? seen.integer_operations() + seen.tensor_flops()
                                     : seen.f16_flops() + seen.f32_flops() + seen.f64_flops() +
                                           seen.tensor_flops() + seen.special_operations());
}

void Fail(v1::AuditStep& step, std::string what) {
  step.set_passed(false);
  step.add_failures(std::move(what));
}

void CheckOperations(const v1::Problem& problem, const std::string& workload,
                     const Counted& counted, v1::AuditStep& step) {
  if (problem.work().unit() == v1::WorkModel::NONE || counted.declared <= 0) return;
  // Integer arithmetic of addresses counts too, so that only too little is a fault there.
  const bool integer = problem.work().unit() == v1::WorkModel::OP_INT8;
  // A model that counts at least one operation says nothing where there is nothing to do.
  const bool few = counted.declared > 1 && counted.least * kOperationsFactor < counted.declared;
  const bool many = !integer && IsTimed(problem, workload) && counted.declared >= kOperationsTold &&
                    counted.least > kOperationsFactor * counted.declared;
  if (few || many) {
    Fail(step, absl::StrFormat("%s on %s does %.0f operations, %.0f are declared", counted.by,
                               workload, counted.least, counted.declared));
  }
}

}  // namespace

v1::AuditStep CheckWorkModel(const v1::Problem& problem,
                             const std::vector<AuditCase>& device_cases) {
  v1::AuditStep step;
  step.set_name("work_model");
  step.set_passed(true);
  std::map<std::string, Counted> workloads;
  int compared = 0;
  for (const AuditCase& one : device_cases) {
    for (const v1::WorkloadResult& result : one.evaluation.outcome().workload_results()) {
      if (!result.has_observed()) continue;
      const absl::StatusOr<WorkCost> cost = CostOf(problem, result.workload());
      if (!cost.ok()) continue;
      ++compared;
      const double bytes = static_cast<double>(result.observed().global_load_bytes() +
                                               result.observed().global_store_bytes());
      const double compulsory = cost->bytes_read + cost->bytes_written;
      if (bytes < compulsory) {
        Fail(step, absl::StrFormat("%s on %s moves %.0f bytes, fewer than the compulsory %.0f",
                                   one.name, result.workload(), bytes, compulsory));
      }
      Counted& counted = workloads.try_emplace(result.workload()).first->second;
      counted.declared = cost->operations;
      const double operations = Operations(problem, result.observed());
      if (operations >= counted.least) continue;
      counted.least = operations;
      counted.by = one.name;
    }
  }
  if (compared == 0) {
    step.set_passed(false);
    step.set_skipped(true);
    step.set_summary("no emulated device has counted");
    return step;
  }
  for (const auto& [workload, counted] : workloads) {
    CheckOperations(problem, workload, counted, step);
  }
  step.set_summary(absl::StrCat(compared, " counts of an emulated device compared"));
  return step;
}

}  // namespace assay
