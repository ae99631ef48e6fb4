#include "worker/runner/runner.h"

#include <fcntl.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "assay/internal/v1/runner.pb.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/status.h"
#include "base/strings.h"
#include "kernels/problem.h"
#include "worker/backend/cuda/device_query.h"
#include "worker/backend/cuda/device_session.h"
#include "worker/measure/measurer.h"
#include "worker/measure/protocol.h"
#include "worker/verify/verifier.h"

namespace assay {
namespace {

using internal::v1::GuestFault;
using internal::v1::RunnerProgress;
using internal::v1::RunnerReport;
using internal::v1::RunnerRequest;
using internal::v1::RunnerWorkloadReport;

absl::StatusOr<UniqueFd> OpenArtifact(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoError(errno, absl::StrCat("open of artifact ", path));
  return fd;
}

void SetFault(const GuestEnd& end, const std::string& workload, const std::string& input_case,
              GuestFault* fault) {
  fault->set_kind(static_cast<GuestFault::Kind>(end.kind));
  fault->set_message(end.message);
  fault->set_tensor(end.tensor);
  fault->set_byte_offset(end.byte_offset);
  fault->set_signal(end.signal);
  fault->set_check(end.check);
  fault->set_file(end.file);
  fault->set_line(end.line);
  fault->set_workload(workload);
  fault->set_input_case(input_case);
}

void Pin(int core) {
  if (core < 0) return;
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  if (sched_setaffinity(0, sizeof cores, &cores) != 0) {
    Log(LogLevel::kWarning, "runner_not_pinned", {{"core", absl::StrCat(core)}});
  }
}

// What a preflight tells of a candidate beside its faults.
void KeepPreflight(RunnerWorkloadReport seen, RunnerWorkloadReport* kept) {
  if (seen.has_observed()) *kept->mutable_observed() = std::move(*seen.mutable_observed());
  if (seen.has_carried_state()) {
    *kept->mutable_carried_state() = std::move(*seen.mutable_carried_state());
  }
  if (seen.has_clock_dependence()) {
    *kept->mutable_clock_dependence() = std::move(*seen.mutable_clock_dependence());
  }
  *kept->mutable_idle_launches() = std::move(*seen.mutable_idle_launches());
}

constexpr absl::Duration kProgressEvery = absl::Seconds(1);

// Guests whose tensors are larger than this give their memory back at once.
constexpr int64_t kRetiredBytesMax = int64_t{4} << 20;

int64_t LoadedBytes(const ResolvedWorkload& workload) {
  int64_t bytes = 0;
  for (const TensorShape& tensor : workload.tensors) bytes += tensor.bytes;
  return bytes;
}

class Execution {
 public:
  Execution(const RunnerRequest& request, GuestSource* guests, Clock* clock,
            const std::function<void(const RunnerProgress&)>& tell, DeviceHealthSource* health,
            RunnerReport* report)
      : request_(request),
        guests_(guests),
        clock_(clock),
        tell_(tell),
        health_(health),
        report_(report) {}

  absl::Status Run() {
    ASSAY_ASSIGN_OR_RETURN(candidate_artifact_, OpenArtifact(request_.candidate_artifact()));
    ASSAY_ASSIGN_OR_RETURN(reference_artifact_, OpenArtifact(request_.reference_artifact()));
    if (!request_.device().preflight_driver().empty()) {
      ASSAY_ASSIGN_OR_RETURN(const bool go_on, Preflight());
      if (!go_on) return absl::OkStatus();
    }
    // Only now: threads of the emulated driver inherit it.
    Pin(request_.runner_core());
    if (request_.has_device()) ASSAY_RETURN_IF_ERROR(OpenDevice());
    for (int i = 0; i < request_.work_size(); ++i) {
      ASSAY_ASSIGN_OR_RETURN(const bool go_on, RunWork(i));
      if (!go_on) break;
    }
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<std::unique_ptr<LoadedWork>> MakeWork(ResolvedWorkload workload) {
    LoadedWorkOptions options;
    options.problem = &request_.problem();
    options.workload = std::move(workload);
    options.call_timeout = absl::Milliseconds(request_.call_timeout_ms());
    options.clock = clock_;
    options.show_life = [this] { ShowLife(); };
    ASSAY_ASSIGN_OR_RETURN(options.reference, guests_->Take());
    if (request_.has_device()) {
      ASSAY_ASSIGN_OR_RETURN(options.candidate, MakeDevice(options.workload));
      // Runners of emulated devices are in the background. The device counts instructions, no time.
      if (options.candidate->has_conditions()) options.call_timeout *= limits::kBackgroundPatience;
    } else {
      ASSAY_ASSIGN_OR_RETURN(options.candidate, guests_->Take());
      if (request_.guest_core() != request_.runner_core()) {
        options.spare_core = request_.guest_core();
      }
    }
    return std::make_unique<LoadedWork>(std::move(options));
  }

  absl::StatusOr<std::unique_ptr<GuestSession>> MakeDevice(const ResolvedWorkload& workload) {
    const internal::v1::DeviceTarget& device = request_.device();
    DeviceSessionOptions options;
    options.candidate = &device.candidate();
    options.configuration = ValueMap(device.configuration().begin(), device.configuration().end());
    options.workload = workload;
    options.seed = DeriveSeed(request_.nonce(), "device", 0);
    return devices_->Make(std::move(options));
  }

  absl::Status OpenDevice() {
    devices_.reset();
    DeviceOptions options = EmulatedOptions(request_.device().driver());
    options.ordinal = request_.device().ordinal();
    options.health = health_;
    ASSAY_ASSIGN_OR_RETURN(devices_, DeviceSessions::Open(options));
    const bool is_timed =
        std::any_of(request_.work().begin(), request_.work().end(),
                    [](const RunnerRequest::Work& work) { return work.measure(); });
    if (!devices_->is_emulated() || !is_timed) return absl::OkStatus();
    return ErrorWithReason(absl::StatusCode::kFailedPrecondition, "DRIVER_EMULATED",
                           "an emulated device verifies and never times");
  }

  DeviceOptions EmulatedOptions(const std::string& driver) const {
    DeviceOptions options;
    options.driver = driver;
    options.arch = request_.device().arch();
    options.host_threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    return options;
  }

  // Runs what is small in the emulated driver, every check on, before a real device is even opened.
  // False when a check proved a fault. What the emulated driver cannot tell becomes a note.
  absl::StatusOr<bool> Preflight() {
    ASSAY_ASSIGN_OR_RETURN(
        devices_, DeviceSessions::Open(EmulatedOptions(request_.device().preflight_driver())));
    if (!devices_->is_emulated()) {
      return absl::InvalidArgumentError("the driver of the preflight is not the emulated one");
    }
    for (const RunnerRequest::Work& work : request_.work()) {
      if (!work.preflight()) continue;
      ASSAY_ASSIGN_OR_RETURN(const bool go_on, PreflightWork(work));
      if (!go_on) return false;
    }
    return true;
  }

  absl::StatusOr<bool> PreflightWork(const RunnerRequest::Work& work) {
    ASSAY_ASSIGN_OR_RETURN(ResolvedWorkload resolved,
                           ResolveWorkload(request_.problem(), work.workload()));
    const std::string name = resolved.name;
    ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<LoadedWork> loaded, MakeWork(std::move(resolved)));
    EnterPhase(RunnerProgress::VERIFY);
    VerifyResult result;
    RunnerWorkloadReport seen;
    ASSAY_ASSIGN_OR_RETURN(result.step,
                           loaded->Load(candidate_artifact_.get(), reference_artifact_.get()));
    if (result.step == Step::kDone) {
      VerifyOptions options;
      options.battery = false;
      options.nonce = request_.nonce();
      ASSAY_ASSIGN_OR_RETURN(result, VerifyWork(loaded.get(), options, &seen));
    }
    std::string note;
    const std::optional<GuestEnd>& ended = loaded->candidate().ended();
    if (result.step == Step::kCandidateEnded && ended.has_value() && ended->kind != 0 &&
        ended->kind != GuestFault::DEVICE_FAULT) {
      note = absl::StrCat(GuestFault::Kind_Name(static_cast<GuestFault::Kind>(ended->kind)), ", ",
                          ended->message);
    } else if (result.step != Step::kDone) {
      NoteGuest(&loaded->candidate());
      return TakeStep(result.step, loaded.get(), result.input_case);
    } else if (!result.right) {
      note = absl::StrCat(
          "a wrong output (", result.reason, ")",
          seen.has_order_dependence() ? " in one order of blocks, warps and lanes" : "");
    } else if (seen.has_order_dependence()) {
      note = "the output changes with the order of blocks, warps and lanes, within the tolerance";
    }
    if (!note.empty()) report_->add_preflight_notes(absl::StrCat("workload ", name, ": ", note));
    KeepPreflight(std::move(seen), &preflight_seen_[name]);
    guests_->Retire(loaded->ReleaseGuests().second);
    return true;
  }

  // False when the report is complete.
  absl::StatusOr<bool> RunWork(int index) {
    const RunnerRequest::Work& work = request_.work(index);
    ASSAY_ASSIGN_OR_RETURN(ResolvedWorkload resolved,
                           ResolveWorkload(request_.problem(), work.workload()));
    RunnerWorkloadReport* out = report_->add_workloads();
    out->set_workload(resolved.name);
    const auto seen = preflight_seen_.find(resolved.name);
    if (seen != preflight_seen_.end()) out->MergeFrom(seen->second);
    ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<LoadedWork> loaded, MakeWork(std::move(resolved)));
    if (index + 1 < request_.work_size()) guests_->Prepare(request_.has_device() ? 1 : 2);
    EnterPhase(RunnerProgress::VERIFY);
    const absl::Duration start = clock_->Monotonic();
    ASSAY_ASSIGN_OR_RETURN(bool go_on, Verify(loaded.get(), work.battery(), out));
    report_->set_verify_ns(report_->verify_ns() +
                           absl::ToInt64Nanoseconds(clock_->Monotonic() - start));
    if (go_on && work.measure()) {
      guests_->WaitIdle();
      EnterPhase(RunnerProgress::MEASURE);
      const absl::Duration measure_start = clock_->Monotonic();
      ASSAY_ASSIGN_OR_RETURN(go_on, Measure(loaded.get(), out));
      report_->set_measure_ns(report_->measure_ns() +
                              absl::ToInt64Nanoseconds(clock_->Monotonic() - measure_start));
    }
    out->set_fp_control_bits(loaded->candidate().fp_control_bits());
    NoteGuest(&loaded->candidate());
    if (LoadedBytes(loaded->workload()) <= kRetiredBytesMax) {
      auto [candidate, reference] = loaded->ReleaseGuests();
      // A device has one session at a time.
      if (!request_.has_device()) guests_->Retire(std::move(candidate));
      guests_->Retire(std::move(reference));
    }
    return go_on;
  }

  void EnterPhase(RunnerProgress::Phase phase) {
    progress_.set_phase(phase);
    told_ = clock_->Monotonic();
    tell_(progress_);
  }

  void ShowLife() {
    if (clock_->Monotonic() - told_ >= kProgressEvery) EnterPhase(progress_.phase());
  }

  void NoteGuest(GuestSession* candidate) {
    report_->set_output_log(absl::StrCat(report_->output_log(), candidate->output()));
    if (report_->walls_size() + report_->missing_walls_size() > 0) return;
    for (const std::string& wall : candidate->walls()) report_->add_walls(wall);
    for (const std::string& wall : candidate->missing_walls()) report_->add_missing_walls(wall);
  }

  // True when the guests did their part. A guest that was lost by nobody's fault is the
  // infrastructure's failure.
  absl::StatusOr<bool> TakeStep(Step step, LoadedWork* loaded, const std::string& input_case) {
    if (step == Step::kDone) return true;
    const std::optional<GuestEnd>& candidate_end = loaded->candidate().ended();
    if (candidate_end.has_value() && candidate_end->device_unclean) {
      report_->set_device_unclean(true);
    }
    const bool reference = step == Step::kReferenceFault;
    const std::optional<GuestEnd>& ended =
        reference ? loaded->reference_ended() : loaded->candidate().ended();
    const std::string& workload = loaded->workload().name;
    // The reference may also be at fault without ending.
    if (ended.has_value() ? ended->kind == 0 : !reference) {
      return ErrorWithReason(absl::StatusCode::kUnavailable, "GUEST_LOST",
                             absl::StrCat("the ", reference ? "reference" : "candidate",
                                          "'s guest was lost in workload ", workload, ": ",
                                          ended.has_value() ? ended->message : "nobody knows why"));
    }
    if (reference) {
      SetFault(loaded->reference_fault(), workload, input_case, report_->mutable_reference_fault());
    } else {
      SetFault(*ended, workload, input_case, report_->mutable_candidate_fault());
    }
    return false;
  }

  absl::StatusOr<bool> Verify(LoadedWork* loaded, bool battery, RunnerWorkloadReport* out) {
    ASSAY_ASSIGN_OR_RETURN(const Step step,
                           loaded->Load(candidate_artifact_.get(), reference_artifact_.get()));
    ASSAY_ASSIGN_OR_RETURN(const bool is_loaded, TakeStep(step, loaded, ""));
    if (!is_loaded) return false;
    VerifyOptions options;
    options.battery = battery;
    options.nonce = request_.nonce();
    ASSAY_ASSIGN_OR_RETURN(const VerifyResult result, VerifyWork(loaded, options, out));
    ASSAY_ASSIGN_OR_RETURN(const bool done, TakeStep(result.step, loaded, result.input_case));
    if (!done) return false;
    out->set_reason(result.reason);
    out->set_nondeterministic(result.nondeterministic);
    return result.right;
  }

  absl::StatusOr<bool> Measure(LoadedWork* loaded, RunnerWorkloadReport* out) {
    const uint64_t seed = DeriveSeed(request_.nonce(), "measure", report_->workloads_size());
    ASSAY_ASSIGN_OR_RETURN(
        const MeasureResult result,
        MeasureWork(loaded,
                    request_.has_device() ? DeviceProtocolForLevel(request_.level())
                                          : ProtocolForLevel(request_.level()),
                    seed, out->mutable_verification(), out->mutable_samples()));
    out->set_hidden_ns(result.hidden_ns);
    out->set_empty_outside_ns(result.empty_outside_ns);
    out->set_new_base_ns(result.new_base_ns);
    out->set_derived_ns(result.derived_ns);
    ASSAY_ASSIGN_OR_RETURN(const bool done, TakeStep(result.step, loaded, "timed calls"));
    if (!done) return false;
    out->set_reason(result.reason);
    out->set_failed_timed_call(result.failed_timed_call);
    out->set_stale_source(result.stale_source);
    if (result.hidden_work) {
      GuestEnd end;
      end.kind = GuestFault::HIDDEN_WORK;
      end.message =
          result.early_answer
              ? "it answered inputs that changed before the clock started: it had computed before"
              : absl::StrCat(
                    "it worked for ", static_cast<int64_t>(result.hidden_ns),
                    " ns (median) before the clock started or after it had reported completion");
      SetFault(end, loaded->workload().name, "timed calls", report_->mutable_candidate_fault());
    }
    return result.right && !result.hidden_work;
  }

  const RunnerRequest& request_;
  GuestSource* const guests_;
  Clock* const clock_;
  const std::function<void(const RunnerProgress&)>& tell_;
  DeviceHealthSource* const health_;
  RunnerReport* const report_;
  std::unique_ptr<DeviceSessions> devices_;
  std::map<std::string, RunnerWorkloadReport> preflight_seen_;  // by workload
  RunnerProgress progress_;
  absl::Duration told_;  // monotonic time of the last progress
  UniqueFd candidate_artifact_;
  UniqueFd reference_artifact_;
};

}  // namespace

void ExecuteRunnerRequest(const RunnerRequest& request, GuestSource* guests, Clock* clock,
                          const std::function<void(const RunnerProgress&)>& progress,
                          DeviceHealthSource* health, RunnerReport* report) {
  const absl::Status status =
      request.has_device_query()
          ? QueryDevice(request.device_query().driver(), request.device_query().ordinal(),
                        report->mutable_device_facts())
          : Execution(request, guests, clock, progress, health, report).Run();
  if (status.ok()) return;
  report->mutable_error()->set_code(absl::StatusCodeToString(status.code()));
  const std::string reason = GetReason(status);
  report->mutable_error()->set_reason(reason.empty() ? "RUNNER_FAILED" : reason);
  report->mutable_error()->set_message(std::string(status.message()));
  report->set_device_unclean(report->device_unclean() || reason == "DRIVER_FAILED");
}

}  // namespace assay
