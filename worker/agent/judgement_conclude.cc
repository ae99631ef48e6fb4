// The second half of a judgement: baselines, ceilings, detectors, and what the outcome says.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "assay/v1/fleet.pb.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/status.h"
#include "base/strings.h"
#include "worker/agent/aggregate.h"
#include "worker/agent/build_plan.h"
#include "worker/agent/judgement.h"
#include "worker/agent/verdict.h"
#include "worker/ceiling/ceiling.h"
#include "worker/measure/statistics.h"

namespace assay {
namespace {

// A machine that changed since is noticed by its next use.
constexpr absl::Duration kBaselineAge = absl::Minutes(10);
constexpr char kBaselineUnavailable[] = "BASELINE_UNAVAILABLE";  // a caveat
constexpr int kThreadBudget = 1;  // of a candidate, and so the cores of its ceiling

}  // namespace

std::string Judgement::BaselineKey(const v1::Baseline& baseline, const Item& item) const {
  return absl::StrCat(work_.problem().digest(), "/", baseline.name(), "/", item.workload.name, "/",
                      protocol_.name);
}

absl::StatusOr<bool> Judgement::MeasureBaseline(const v1::Baseline& baseline) {
  const absl::Duration now = options_.clock->Monotonic();
  std::vector<Task> missing;
  for (const Item& item : items_) {
    if (!item.measure) continue;
    const auto cached = pipeline_.baselines_.find(BaselineKey(baseline, item));
    if (cached != pipeline_.baselines_.end() && cached->second.until > now) continue;
    missing.push_back({&item, false, true, false});
  }
  if (missing.empty()) return true;
  const absl::StatusOr<BuildResult> built =
      Build(options_.builder, BaselineBuild(work_.problem(), baseline));
  if (GetReason(built.status()) == kLibraryNotInstalled) {
    missing_baselines_.push_back(baseline.name());
    return true;
  }
  if (!built.ok()) return built.status();
  if (!built->ok) {
    SetInvalidProblem(
        "BASELINE_FAILED",
        absl::StrCat("baseline ", baseline.name(), " does not build: ", built->reason), &outcome_);
    return false;
  }
  std::map<std::string, std::vector<double>> medians;
  for (int runner = 0; runner < protocol_.runner_count; ++runner) {
    ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<Report> report,
                           RunRunner({built->artifact_path, nullptr, nullptr, &baseline}, missing));
    if (!TakeBaselineReport(*report, baseline.name())) return false;
    for (const internal::v1::RunnerWorkloadReport& work : report->workloads()) {
      medians[work.workload()].push_back(
          Median({work.samples().warm_ns().begin(), work.samples().warm_ns().end()}));
    }
  }
  for (const Task& task : missing) {
    pipeline_.baselines_[BaselineKey(baseline, *task.item)] = {
        Median(medians[task.item->workload.name]), now + kBaselineAge};
  }
  return true;
}

absl::StatusOr<bool> Judgement::MeasureBaselines() {
  // They are host code.
  if (options_.device.has_value()) return true;
  for (const v1::Baseline& baseline : work_.problem().baselines()) {
    ASSAY_ASSIGN_OR_RETURN(const bool go_on, MeasureBaseline(baseline));
    if (!go_on) return false;
  }
  return true;
}

void Judgement::FillCeiling(const Item& item, v1::WorkloadResult* result) const {
  const absl::StatusOr<WorkCost> cost = ComputeWorkCost(runner_problem_, item.workload);
  const double median_ns = result->measurement().median_ns();
  if (!cost.ok() || options_.calibration == nullptr || median_ns <= 0) return;
  // A handshake that measured longer than the calls that contain it is noise.
  const double launch_ns = std::min(result->measurement().handshake_ns(), median_ns);
  result->clear_ceiling();
  ComputeCeiling(*cost, *options_.calibration, launch_ns,
                 options_.device.has_value() ? kWholeDevice : kThreadBudget,
                 result->mutable_ceiling());
  result->set_efficiency_ratio(result->ceiling().time_ns() / median_ns);
}

void Judgement::FillResult(const Item& item) {
  v1::WorkloadResult& result = *outcome_.add_workload_results();
  result.set_workload(item.workload.name);
  for (const auto& [axis, value] : item.workload.axes) (*result.mutable_axes())[axis] = value;
  result.set_device(options_.device_name);
  *result.mutable_verification() = item.verification;
  if (item.observed.launches() > 0) {
    *result.mutable_observed() = item.observed;
    const absl::StatusOr<WorkCost> cost = ComputeWorkCost(work_.problem(), item.workload);
    if (cost.ok()) SetIntensities(*cost, result.mutable_observed());
  }
  if (item.verification.passed()) {
    v1::VerifiedRange& range = *outcome_.mutable_verified_range();
    for (const TensorShape& tensor : item.workload.tensors) {
      range.set_elements_max(std::max(range.elements_max(), tensor.elements));
      range.set_bytes_max(std::max(range.bytes_max(), tensor.bytes));
    }
  }
  const bool complete =
      std::all_of(item.samples.begin(), item.samples.end(),
                  [](const v1::RunnerSamples& samples) { return !samples.warm_ns().empty(); });
  if (item.samples.empty() || !complete || !item.verification.passed()) return;
  std::vector<std::string> caveats =
      options_.device.has_value() ? options_.device->caveats : options_.machine.caveats;
  if (!missing_baselines_.empty()) caveats.push_back(kBaselineUnavailable);
  AggregateRunners(item.samples, protocol_.name, caveats, result.mutable_measurement());
  FillCeiling(item, &result);
  for (const v1::Baseline& baseline : work_.problem().baselines()) {
    const auto cached = pipeline_.baselines_.find(BaselineKey(baseline, item));
    if (cached == pipeline_.baselines_.end() || result.measurement().median_ns() <= 0) continue;
    v1::BaselineResult& out = *result.add_baselines();
    out.set_name(baseline.name());
    out.set_median_ns(cached->second.median_ns);
    out.set_speedup_ratio(cached->second.median_ns / result.measurement().median_ns());
  }
}

void Judgement::FillResults() {
  for (const Item& item : items_) {
    if (item.verified) FillResult(item);
  }
}

// Noise slows a calibration down and lowers the ceilings. Before anybody is called implausible the
// machine is measured again, and the higher rates count from then on.
absl::Status Judgement::ConfirmImplausible() {
  const auto is_implausible = [](const v1::WorkloadResult& result) {
    if (!result.has_ceiling()) return false;
    const v1::Measurement& measurement = result.measurement();
    const auto beats = [&](double ns, double efficiency_max) {
      return ns > 0 && result.ceiling().time_ns() > efficiency_max * ns;
    };
    return beats(measurement.median_ns(), kEfficiencyMax) ||
           beats(measurement.cold().median_ns(), kEfficiencyMax) ||
           (result.ceiling().bound() != v1::Ceiling::LAUNCH &&
            (beats(measurement.warm().min_ns(), kSampleEfficiencyMax) ||
             beats(measurement.cold().min_ns(), kSampleEfficiencyMax)));
  };
  const auto& results = outcome_.workload_results();
  if (options_.recalibrate == nullptr ||
      std::none_of(results.begin(), results.end(), is_implausible)) {
    return absl::OkStatus();
  }
  ASSAY_RETURN_IF_ERROR(CheckWanted());
  auto calibration = std::make_shared<v1::Calibration>(*options_.calibration);
  ASSAY_RETURN_IF_ERROR(options_.recalibrate(calibration.get()));
  pipeline_.options_.calibration = std::move(calibration);
  for (v1::WorkloadResult& result : *outcome_.mutable_workload_results()) {
    for (const Item& item : items_) {
      if (item.workload.name == result.workload() && result.has_ceiling()) {
        FillCeiling(item, &result);
      }
    }
  }
  return absl::OkStatus();
}

void Judgement::Inspect() {
  Evidence evidence;
  evidence.candidate = &work_.candidate();
  evidence.problem = &runner_problem_;
  // Its scans only note, so that one that cannot be made loses nothing else.
  const absl::StatusOr<std::string> artifact =
      ReadFile(candidate_.artifact_path, limits::kArtifactBytesMax);
  if (artifact.ok()) {
    (options_.device.has_value() ? evidence.ptx : evidence.shared_object) = *artifact;
  }
  for (const std::unique_ptr<Report>& report : reports_) evidence.reports.push_back(report.get());
  for (const v1::WorkloadResult& result : outcome_.workload_results()) {
    evidence.results.push_back(&result);
  }
  bool decided = false;
  for (const std::unique_ptr<Detector>& detector : pipeline_.detectors_) {
    for (const DetectorFinding& from : detector->Inspect(evidence)) {
      v1::Finding& to = *outcome_.add_findings();
      to.set_detector(std::string(detector->name()));
      to.set_severity(static_cast<v1::Finding::Severity>(from.severity));
      to.set_evidence(from.evidence);
      to.set_workload(from.workload);
      to.set_file(from.file);
      to.set_line(from.line);
      if (from.severity != v1::Finding::PROOF || decided) continue;
      decided = true;
      outcome_.set_verdict(static_cast<v1::Verdict>(from.verdict));
      outcome_.set_reason(from.reason);
      outcome_.set_message(
          absl::StrCat(Av(detector->name()), " in workload ", from.workload, ": ", from.evidence));
    }
  }
}

absl::Status Judgement::Conclude() {
  Nonce();  // also where nothing ran
  FillResults();
  ASSAY_RETURN_IF_ERROR(ConfirmImplausible());
  // A problem that is at fault says nothing about the candidate, for good or bad.
  if (outcome_.verdict() != v1::INVALID_PROBLEM) Inspect();
  if (outcome_.verdict() == v1::VERDICT_UNSPECIFIED) {
    SetPassed(missing_baselines_, &outcome_);
    if (is_emulated()) {
      outcome_.set_message(absl::StrCat(outcome_.message(), " on ", options_.device->device_class,
                                        " with every check on; an emulated device gives no time"));
    }
  }
  v1::Environment& environment = *outcome_.mutable_environment();
  for (const std::unique_ptr<Report>& report : reports_) {
    if (report->walls_size() + report->missing_walls_size() == 0) continue;
    *environment.mutable_walls() = report->walls();
    *environment.mutable_missing_walls() = report->missing_walls();
    break;
  }
  outcome_.set_result_id(ResultId(work_, configuration_, outcome_,
                                  level_ == v1::VERIFY ? "verify-v1" : protocol_.name));
  outcome_.set_env_id(EnvironmentId(environment, options_.machine));
  return absl::OkStatus();
}

void Judgement::FillEnvironment() {
  v1::Environment& environment = *outcome_.mutable_environment();
  environment.set_harness_version(options_.harness_version);
  environment.set_compiler(options_.builder->compiler());
  environment.set_instruction_set(InstructionSet(options_.machine));
  environment.set_cpu_model(options_.machine.model_name);
  environment.set_kernel(options_.machine.kernel);
  if (!is_real_device()) return;
  environment.set_instruction_set(options_.device->instruction_set);
  environment.set_device_model(options_.device->model);
}

}  // namespace assay
