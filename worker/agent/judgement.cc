#include "worker/agent/judgement.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/limits.h"
#include "base/random.h"
#include "base/status.h"
#include "base/strings.h"
#include "kernels/candidate.h"
#include "kernels/contract.h"
#include "worker/agent/aggregate.h"
#include "worker/agent/build_plan.h"
#include "worker/agent/verdict.h"
#include "worker/verify/loaded_work.h"

namespace assay {
namespace {

constexpr int kGuestsMin = 2;
constexpr int kGuestsMax = 8;
// What an emulated device does in about a second, unless a workload is asked for by name.
constexpr double kEmulatedOperationsMax = 4e7;
constexpr double kEmulatedBytesMax = 16 << 20;
constexpr double kNamedEmulationScale = 16;

void SetUnsupported(std::string_view reason, std::string_view message, v1::Outcome* outcome) {
  outcome->set_verdict(v1::UNSUPPORTED);
  outcome->set_reason(std::string(reason));
  outcome->set_message(std::string(message));
}

absl::StatusCode CodeByName(const std::string& name) {
  for (int code = 1; code <= 16; ++code) {
    if (absl::StatusCodeToString(static_cast<absl::StatusCode>(code)) == name) {
      return static_cast<absl::StatusCode>(code);
    }
  }
  return absl::StatusCode::kInternal;
}

void SetDuration(int64_t ns, google::protobuf::Duration* duration) {
  duration->set_seconds(ns / 1'000'000'000);
  duration->set_nanos(static_cast<int32_t>(ns % 1'000'000'000));
}

std::string FaultText(const internal::v1::GuestFault& fault) {
  return absl::StrCat(fault.message(), " (workload ", fault.workload(), ")");
}

std::string BuildText(const BuildResult& result) {
  v1::Outcome outcome;
  SetBuildVerdict(result, &outcome);
  return absl::StrCat(result.reason, ": ", outcome.message());
}

}  // namespace

Judgement::Judgement(Pipeline* pipeline, const internal::v1::WorkSpec& work,
                     const PipelineHooks& hooks, v1::Outcome* outcome)
    : pipeline_(*pipeline),
      options_(pipeline->options_),
      work_(work),
      hooks_(hooks),
      outcome_(*outcome),
      level_(work.evaluation().level() == v1::LEVEL_UNSPECIFIED ? v1::QUICK
                                                                : work.evaluation().level()),
      protocol_(is_real_device() ? DeviceProtocolForLevel(level_) : ProtocolForLevel(level_)),
      start_(options_.clock->Monotonic()) {
  runner_problem_ = work.problem();
  runner_problem_.clear_files();
}

absl::Status Judgement::Run() {
  FillEnvironment();
  const absl::Status status = RunSteps();
  if (out_of_time_) {
    outcome_.set_verdict(v1::TIMED_OUT);
    outcome_.set_reason("EVALUATION_TIMED_OUT");
    outcome_.set_message(absl::StrCat("the evaluation did not end within ",
                                      limits::kEvaluationSeconds,
                                      " s; last: ", std::string(status.message())));
  } else if (!status.ok()) {
    return status;
  }
  return Conclude();
}

absl::Status Judgement::RunSteps() {
  ASSAY_ASSIGN_OR_RETURN(bool go_on, Prepare());
  if (go_on) {
    ASSAY_ASSIGN_OR_RETURN(go_on, BuildAll());
  }
  if (go_on) {
    ASSAY_ASSIGN_OR_RETURN(go_on, RunCandidate());
  }
  if (go_on && level_ == v1::PAIRED) {
    ASSAY_ASSIGN_OR_RETURN(go_on, RunPairs());
  }
  return absl::OkStatus();
}

absl::Status Judgement::CheckWanted() const {
  if (hooks_.keep_going()) return absl::OkStatus();
  return absl::CancelledError("the evaluation is no longer wanted");
}

absl::Duration Judgement::TimeLeft() const {
  return absl::Seconds(limits::kEvaluationSeconds) - (options_.clock->Monotonic() - start_);
}

bool Judgement::ChooseBuilder() {
  const v1::Language language = work_.candidate().spec().language();
  if (!options_.device.has_value()) {
    candidate_builder_ = options_.builder;
    if (language == v1::CPP) return true;
    SetUnsupported("LANGUAGE_UNSUPPORTED",
                   absl::StrCat("this worker builds CPP, not ", v1::Language_Name(language)),
                   &outcome_);
    return false;
  }
  const DeviceBackend& device = *options_.device;
  if (level_ == v1::PAIRED && device.is_emulated) {
    SetUnsupported("NO_TIMES",
                   absl::StrCat("device ", device.device_class,
                                " is emulated: it verifies and never times, so nothing can be "
                                "compared; use a CUDA device"),
                   &outcome_);
    return false;
  }
  if (language != v1::CUDA_CPP && language != v1::PTX) {
    SetUnsupported(
        "LANGUAGE_UNSUPPORTED",
        absl::StrCat("this worker builds CUDA_CPP and PTX, not ", v1::Language_Name(language)),
        &outcome_);
    return false;
  }
  candidate_builder_ = DeviceBuilder(language);
  if (candidate_builder_ != nullptr) return true;
  SetUnsupported(GetReason(device.cuda_missing), Sv(device.cuda_missing.message()), &outcome_);
  return false;
}

Builder* Judgement::DeviceBuilder(v1::Language language) const {
  return language == v1::PTX ? options_.device->ptx : options_.device->cuda;
}

bool Judgement::IsTooLargeToEmulate(const ResolvedWorkload& workload, bool named) const {
  const absl::StatusOr<WorkCost> cost = ComputeWorkCost(work_.problem(), workload);
  if (!cost.ok()) return false;
  const double scale = named ? kNamedEmulationScale : 1;
  return cost->operations > scale * kEmulatedOperationsMax ||
         cost->footprint_bytes > scale * kEmulatedBytesMax;
}

absl::StatusOr<bool> Judgement::Prepare() {
  const v1::Candidate& candidate = work_.candidate();
  if (!ChooseBuilder()) return false;
  ValueMap requested(work_.evaluation().configuration().begin(),
                     work_.evaluation().configuration().end());
  absl::StatusOr<ValueMap> configuration = ResolveConfiguration(candidate.spec(), requested);
  if (!configuration.ok()) {
    SetUnsupported("CONFIGURATION_INVALID", Sv(configuration.status().message()), &outcome_);
    return false;
  }
  configuration_ = *std::move(configuration);
  absl::StatusOr<v1::Problem> judged =
      ProblemUnderContract(runner_problem_, candidate.spec().contract());
  if (!judged.ok()) {
    SetUnsupported("CONTRACT_UNKNOWN", Sv(judged.status().message()), &outcome_);
    return false;
  }
  runner_problem_ = *std::move(judged);
  if (!runner_problem_.contracts().empty()) {
    outcome_.set_contract(runner_problem_.contracts(0).name());
  }

  std::vector<v1::WorkloadSelector> selectors(work_.evaluation().workloads().begin(),
                                              work_.evaluation().workloads().end());
  // Whoever names workloads and asks for nothing but a verdict gets exactly these; before times are
  // believed, the problem's ragged and unit shapes are verified along.
  const bool only_named = level_ == v1::VERIFY && !selectors.empty();
  std::vector<v1::WorkloadSelector> along;
  for (const v1::Workload& workload : work_.problem().workloads()) {
    v1::WorkloadSelector selector;
    selector.set_name(workload.name());
    if (workload.verify_only()) {
      if (!only_named) along.push_back(selector);
    } else if (work_.evaluation().workloads().empty()) {
      selectors.push_back(selector);
    }
  }
  const size_t selected_count = selectors.size();
  selectors.insert(selectors.end(), along.begin(), along.end());
  std::vector<std::string> left_out;
  for (size_t i = 0; i < selectors.size(); ++i) {
    absl::StatusOr<ResolvedWorkload> resolved = ResolveSelector(work_.problem(), selectors[i]);
    if (!resolved.ok()) {
      SetUnsupported("WORKLOAD_INVALID", Sv(resolved.status().message()), &outcome_);
      return false;
    }
    const bool known = std::any_of(items_.begin(), items_.end(), [&](const Item& item) {
      return item.workload.name == resolved->name;
    });
    if (known) continue;
    const bool named = i < selected_count && !work_.evaluation().workloads().empty();
    if (is_emulated() && IsTooLargeToEmulate(*resolved, named)) {
      left_out.push_back(resolved->name);
      if (!named) continue;
      SetUnsupported(
          "TOO_LARGE_TO_EMULATE",
          absl::StrCat("workload ", resolved->name,
                       " would take an emulated device minutes; name a smaller one, e.g. ",
                       "--workload with smaller axes"),
          &outcome_);
      return false;
    }
    Item item;
    item.selected = i < selected_count;
    item.measure =
        item.selected && !resolved->verify_only && level_ != v1::VERIFY && !is_emulated();
    // At level VERIFY named workloads come alone.
    item.preflight = is_real_device() && !options_.device->preflight_driver.empty() &&
                     (resolved->verify_only || (named && level_ == v1::VERIFY)) &&
                     !IsTooLargeToEmulate(*resolved, false);
    item.workload = *std::move(resolved);
    items_.push_back(std::move(item));
  }
  if (!items_.empty()) return true;
  SetUnsupported(
      "TOO_LARGE_TO_EMULATE",
      absl::StrCat("every workload would take an emulated device minutes (",
                   absl::StrJoin(left_out, ", "), "); name a smaller one with --workload"),
      &outcome_);
  return false;
}

absl::StatusOr<BuildResult> Judgement::Build(Builder* builder, const BuildRequest& request) {
  ASSAY_RETURN_IF_ERROR(CheckWanted());
  const absl::Duration start = options_.clock->Monotonic();
  absl::StatusOr<BuildResult> result = builder->Build(request);
  build_time_ += options_.clock->Monotonic() - start;
  return result;
}

absl::StatusOr<bool> Judgement::BuildAll() {
  hooks_.set_stage("BUILD");
  ASSAY_ASSIGN_OR_RETURN(candidate_,
                         Build(candidate_builder_,
                               CandidateBuild(work_.problem(), work_.candidate(), configuration_)));
  FillBuildReport(candidate_, candidate_builder_->compiler(), outcome_.mutable_build());
  if (!candidate_.ok) {
    SetBuildVerdict(candidate_, &outcome_);
    return false;
  }
  ASSAY_ASSIGN_OR_RETURN(reference_, Build(options_.builder, ReferenceBuild(work_.problem())));
  if (!reference_.ok) {
    SetInvalidProblem("REFERENCE_BUILD_FAILED", BuildText(reference_), &outcome_);
    return false;
  }
  if (level_ != v1::PAIRED) return true;
  const v1::Candidate& baseline = work_.baseline_candidate();
  absl::StatusOr<ValueMap> configuration = ResolveConfiguration(baseline.spec(), {});
  if (!configuration.ok()) {
    SetInvalidProblem("BASELINE_FAILED", Sv(configuration.status().message()), &outcome_);
    return false;
  }
  baseline_configuration_ = *std::move(configuration);
  Builder* const builder =
      options_.device.has_value() ? DeviceBuilder(baseline.spec().language()) : options_.builder;
  if (builder == nullptr) {
    SetInvalidProblem("BASELINE_FAILED", Sv(options_.device->cuda_missing.message()), &outcome_);
    return false;
  }
  ASSAY_ASSIGN_OR_RETURN(paired_baseline_, Build(builder, CandidateBuild(work_.problem(), baseline,
                                                                         baseline_configuration_)));
  if (!paired_baseline_.ok) {
    SetInvalidProblem("BASELINE_FAILED",
                      absl::StrCat("the baseline candidate: ", BuildText(paired_baseline_)),
                      &outcome_);
    return false;
  }
  return true;
}

void Judgement::FillDevice(const Subject& subject, internal::v1::DeviceTarget* target) const {
  const DeviceBackend& device = *options_.device;
  target->set_driver(device.driver);
  target->set_arch(device.arch);
  target->set_ordinal(device.ordinal);
  *target->mutable_candidate() = *subject.spec;
  target->mutable_configuration()->insert(subject.configuration->begin(),
                                          subject.configuration->end());
}

uint64_t Judgement::Nonce() {
  while (outcome_.nonce() == 0) {
    outcome_.set_nonce(work_.nonce() != 0 ? work_.nonce() : options_.nonce());
  }
  return outcome_.nonce();
}

absl::StatusOr<std::unique_ptr<Judgement::Report>> Judgement::RunRunner(
    const Subject& subject, const std::vector<Task>& tasks) {
  ASSAY_RETURN_IF_ERROR(CheckWanted());
  internal::v1::RunnerRequest request;
  *request.mutable_problem() = runner_problem_;
  request.mutable_problem()->clear_baselines();
  if (subject.baseline != nullptr) *request.mutable_problem()->add_baselines() = *subject.baseline;
  request.set_candidate_artifact(subject.artifact);
  request.set_reference_artifact(reference_.artifact_path);
  if (options_.device.has_value()) FillDevice(subject, request.mutable_device());
  for (const Task& task : tasks) {
    internal::v1::RunnerRequest::Work& work = *request.add_work();
    work.mutable_workload()->set_name(task.item->workload.name);
    for (const auto& [axis, value] : task.item->workload.axes) {
      (*work.mutable_workload()->mutable_axes())[axis] = value;
    }
    work.mutable_workload()->set_verify_only(task.item->workload.verify_only);
    work.set_battery(task.battery);
    work.set_measure(task.measure);
    work.set_preflight(task.preflight);
    if (task.preflight) {
      request.mutable_device()->set_preflight_driver(options_.device->preflight_driver);
    }
  }
  // Drawn only now: no build saw it, and no two runners share inputs. What the candidate is
  // compared with counts apart, since a stored time may stand for it.
  const bool is_candidate = subject.spec == &work_.candidate().spec();
  request.set_nonce(DeriveSeed(Nonce(), is_candidate ? "candidate runner" : "other runner",
                               is_candidate ? candidate_runners_++ : other_runners_++));
  request.set_level(level_);
  // What never measures takes no core from what does, and its blocks run on all of them.
  request.set_runner_core(is_emulated() ? -1 : options_.cores.runner_core);
  request.set_guest_core(is_emulated() ? -1 : options_.cores.guest_core);
  request.set_call_timeout_ms(limits::kCallSeconds * 1000);
  ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<RunnerClient> runner, options_.runners->Take());
  RunnerHooks hooks;
  hooks.keep_going = hooks_.keep_going;
  hooks.on_progress = [this](const internal::v1::RunnerProgress& progress) {
    hooks_.set_stage(internal::v1::RunnerProgress::Phase_Name(progress.phase()));
  };
  absl::StatusOr<std::unique_ptr<Report>> ran = runner->Run(request, TimeLeft(), hooks);
  // Single calls have a limit of their own: what is left is a candidate (or a reference) that is
  // slow at every call, and another worker would wait as long.
  out_of_time_ = absl::IsDeadlineExceeded(ran.status());
  if (is_real_device() && (!ran.ok() || (*ran)->device_unclean())) {
    pipeline_.is_device_suspect_ = true;
  }
  ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<Report> report, std::move(ran));
  verify_ns_ += report->verify_ns();
  measure_ns_ += report->measure_ns();
  if (report->has_error()) {
    return ErrorWithReason(CodeByName(report->error().code()), report->error().reason(),
                           absl::StrCat("runner: ", report->error().message()));
  }
  return report;
}

bool Judgement::TakeReport(std::unique_ptr<Report> report) {
  const Report& taken = *report;
  reports_.push_back(std::move(report));
  outcome_.set_output_log(absl::StrCat(outcome_.output_log(), taken.output_log())
                              .substr(0, limits::kGuestOutputBytesMax));
  for (const internal::v1::RunnerWorkloadReport& work : taken.workloads()) {
    for (Item& item : items_) {
      if (item.workload.name != work.workload()) continue;
      const int64_t checked = item.verification.checked_call_count();
      if (!item.verified || !work.verification().passed()) {
        item.verification = work.verification();
      }
      item.verification.set_checked_call_count(checked + work.verification().checked_call_count());
      item.verified = true;
      if (work.has_observed()) item.observed = work.observed();
      if (work.has_samples()) item.samples.push_back(work.samples());
    }
  }
  if (taken.has_reference_fault()) {
    SetInvalidProblem("REFERENCE_FAILED", FaultText(taken.reference_fault()), &outcome_);
    return false;
  }
  if (taken.has_candidate_fault()) {
    SetFaultVerdict(taken.candidate_fault(), &outcome_);
    return false;
  }
  for (const internal::v1::RunnerWorkloadReport& work : taken.workloads()) {
    if (work.verification().passed()) continue;
    SetWrongVerdict(work, &outcome_);
    return false;
  }
  return true;
}

bool Judgement::TakeBaselineReport(const Report& report, const std::string& name) {
  std::string problem;
  if (report.has_reference_fault()) problem = FaultText(report.reference_fault());
  if (report.has_candidate_fault()) problem = FaultText(report.candidate_fault());
  for (const internal::v1::RunnerWorkloadReport& work : report.workloads()) {
    if (problem.empty() && !work.verification().passed()) {
      problem =
          absl::StrCat("wrong output in workload ", work.workload(), ": ", DescribeMismatch(work));
    }
  }
  if (problem.empty()) return true;
  SetInvalidProblem(report.has_reference_fault() ? "REFERENCE_FAILED" : "BASELINE_FAILED",
                    absl::StrCat("baseline ", name, ": ", problem), &outcome_);
  return false;
}

absl::StatusOr<bool> Judgement::RunCandidate() {
  // The small workloads that are only verified come first: they fail fast.
  std::vector<Task> tasks;
  for (const bool selected : {false, true}) {
    for (const Item& item : items_) {
      if (item.selected != selected) continue;
      tasks.push_back({&item, true, item.measure && level_ != v1::PAIRED, item.preflight});
    }
  }
  ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<Report> report, RunRunner(CandidateSubject(), tasks));
  if (!TakeReport(std::move(report))) return false;
  if (level_ == v1::PAIRED) {
    for (Task& task : tasks) task.preflight = false;
    ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<Report> baseline, RunRunner(BaselineSubject(), tasks));
    return TakeBaselineReport(*baseline, "candidate");
  }
  std::vector<Task> again;
  for (const Item& item : items_) {
    if (item.measure) again.push_back({&item, false, true, false});
  }
  if (again.empty()) return true;
  for (int runner = 1; runner < protocol_.runner_count; ++runner) {
    ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<Report> more, RunRunner(CandidateSubject(), again));
    if (!TakeReport(std::move(more))) return false;
  }
  return MeasureBaselines();
}

absl::StatusOr<bool> Judgement::RunPair(Item* item, bool candidate_first) {
  double baseline_ns = 0;
  double candidate_ns = 0;
  for (const bool candidate : {candidate_first, !candidate_first}) {
    ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<Report> report,
                           RunRunner(candidate ? CandidateSubject() : BaselineSubject(),
                                     {{item, false, true, false}}));
    v1::Measurement measurement;
    const bool measured = report->workloads_size() == 1 && report->workloads(0).has_samples();
    if (measured) {
      AggregateRunners({report->workloads(0).samples()}, protocol_.name, {}, &measurement);
    }
    (candidate ? candidate_ns : baseline_ns) = measurement.median_ns();
    const bool go_on =
        candidate ? TakeReport(std::move(report)) : TakeBaselineReport(*report, "candidate");
    if (!go_on) return false;
  }
  v1::RunnerPair& pair = *outcome_.add_pairs();
  pair.set_workload(item->workload.name);
  pair.set_baseline_ns(baseline_ns);
  pair.set_candidate_ns(candidate_ns);
  pair.set_candidate_first(candidate_first);
  return true;
}

absl::StatusOr<bool> Judgement::RunPairs() {
  Random order(DeriveSeed(Nonce(), "pairs", 0));
  for (Item& item : items_) {
    if (!item.measure) continue;
    bool candidate_first = false;
    for (int pair = 0; pair < work_.evaluation().pair_count(); ++pair) {
      // Blocks of two pairs, ABBA or BAAB: a drift along the block hits both sides alike.
      candidate_first = pair % 2 == 0 ? order.Chance(0.5) : !candidate_first;
      ASSAY_ASSIGN_OR_RETURN(const bool go_on, RunPair(&item, candidate_first));
      if (!go_on) return false;
    }
  }
  return true;
}

int Judgement::guest_count() const {
  return std::clamp(2 * static_cast<int>(items_.size()), kGuestsMin, kGuestsMax);
}

void Judgement::FillTimeline(v1::Timeline* timeline) const {
  const int64_t build_ns = absl::ToInt64Nanoseconds(build_time_);
  const int64_t total_ns = absl::ToInt64Nanoseconds(options_.clock->Monotonic() - start_);
  SetDuration(build_ns, timeline->mutable_build());
  SetDuration(verify_ns_, timeline->mutable_verify());
  SetDuration(measure_ns_, timeline->mutable_measure());
  SetDuration(std::max<int64_t>(0, total_ns - build_ns - verify_ns_ - measure_ns_),
              timeline->mutable_other());
}

}  // namespace assay
