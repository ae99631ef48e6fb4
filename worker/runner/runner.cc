#include "worker/runner/runner.h"

#include <fcntl.h>

#include <cerrno>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "assay/internal/v1/runner.pb.h"
#include "base/file.h"
#include "base/status.h"
#include "base/strings.h"
#include "kernels/problem.h"
#include "worker/measure/measurer.h"
#include "worker/measure/protocol.h"
#include "worker/verify/verifier.h"

namespace assay {
namespace {

using internal::v1::GuestFault;
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
  fault->set_workload(workload);
  fault->set_input_case(input_case);
}

class Execution {
 public:
  Execution(const RunnerRequest& request, GuestSource* guests, Clock* clock, RunnerReport* report)
      : request_(request), guests_(guests), clock_(clock), report_(report) {}

  absl::Status Run() {
    ASSAY_ASSIGN_OR_RETURN(candidate_artifact_, OpenArtifact(request_.candidate_artifact()));
    ASSAY_ASSIGN_OR_RETURN(reference_artifact_, OpenArtifact(request_.reference_artifact()));
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
    ASSAY_ASSIGN_OR_RETURN(options.reference, guests_->Take());
    ASSAY_ASSIGN_OR_RETURN(options.candidate, guests_->Take());
    return std::make_unique<LoadedWork>(std::move(options));
  }

  // False when the report is complete.
  absl::StatusOr<bool> RunWork(int index) {
    const RunnerRequest::Work& work = request_.work(index);
    ASSAY_ASSIGN_OR_RETURN(ResolvedWorkload resolved,
                           ResolveWorkload(request_.problem(), work.workload()));
    RunnerWorkloadReport* out = report_->add_workloads();
    out->set_workload(resolved.name);
    ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<LoadedWork> loaded, MakeWork(std::move(resolved)));
    if (index + 1 < request_.work_size()) guests_->Prepare(2);
    const absl::Duration start = clock_->Monotonic();
    ASSAY_ASSIGN_OR_RETURN(bool go_on, Verify(loaded.get(), work.battery(), out));
    report_->set_verify_ns(report_->verify_ns() +
                           absl::ToInt64Nanoseconds(clock_->Monotonic() - start));
    if (go_on && work.measure()) {
      guests_->WaitIdle();
      const absl::Duration measure_start = clock_->Monotonic();
      ASSAY_ASSIGN_OR_RETURN(go_on, Measure(loaded.get(), out));
      report_->set_measure_ns(report_->measure_ns() +
                              absl::ToInt64Nanoseconds(clock_->Monotonic() - measure_start));
    }
    NoteGuest(&loaded->candidate());
    return go_on;
  }

  void NoteGuest(GuestSession* candidate) {
    report_->set_output_log(absl::StrCat(report_->output_log(), candidate->output()));
    if (report_->walls_size() + report_->missing_walls_size() > 0) return;
    for (const std::string& wall : candidate->walls()) report_->add_walls(wall);
    for (const std::string& wall : candidate->missing_walls()) report_->add_missing_walls(wall);
  }

  // True when the guests did their part.
  bool TakeStep(Step step, LoadedWork* loaded, const std::string& input_case) {
    const std::string& workload = loaded->workload().name;
    if (step == Step::kReferenceFault) {
      SetFault(loaded->reference_fault(), workload, input_case, report_->mutable_reference_fault());
    } else if (step == Step::kCandidateEnded) {
      GuestEnd end;
      end.message = "the guest ended without saying why";
      SetFault(loaded->candidate().ended().value_or(end), workload, input_case,
               report_->mutable_candidate_fault());
    }
    return step == Step::kDone;
  }

  absl::StatusOr<bool> Verify(LoadedWork* loaded, bool battery, RunnerWorkloadReport* out) {
    ASSAY_ASSIGN_OR_RETURN(const Step step,
                           loaded->Load(candidate_artifact_.get(), reference_artifact_.get()));
    if (!TakeStep(step, loaded, "")) return false;
    VerifyOptions options;
    options.battery = battery;
    options.nonce = request_.nonce();
    ASSAY_ASSIGN_OR_RETURN(const VerifyResult result,
                           VerifyWork(loaded, options, out->mutable_verification()));
    if (!TakeStep(result.step, loaded, result.input_case)) return false;
    out->set_reason(result.reason);
    out->set_nondeterministic(result.nondeterministic);
    return result.right;
  }

  absl::StatusOr<bool> Measure(LoadedWork* loaded, RunnerWorkloadReport* out) {
    const uint64_t seed = DeriveSeed(request_.nonce(), "measure", report_->workloads_size());
    ASSAY_ASSIGN_OR_RETURN(const MeasureResult result,
                           MeasureWork(loaded, ProtocolForLevel(request_.level()), seed,
                                       out->mutable_verification(), out->mutable_samples()));
    out->set_answer_ns(result.answer_ns);
    out->set_empty_answer_ns(result.empty_answer_ns);
    if (!TakeStep(result.step, loaded, "timed calls")) return false;
    out->set_reason(result.reason);
    out->set_failed_timed_call(result.failed_timed_call);
    out->set_stale_source(result.stale_source);
    if (result.late_work) {
      GuestEnd end;
      end.kind = GuestFault::LATE_WORK;
      end.message = absl::StrCat("it went on for ",
                                 static_cast<int64_t>(result.answer_ns - result.empty_answer_ns),
                                 " ns (median) after it had reported completion");
      SetFault(end, loaded->workload().name, "timed calls", report_->mutable_candidate_fault());
    }
    return result.right && !result.late_work;
  }

  const RunnerRequest& request_;
  GuestSource* const guests_;
  Clock* const clock_;
  RunnerReport* const report_;
  UniqueFd candidate_artifact_;
  UniqueFd reference_artifact_;
};

}  // namespace

void ExecuteRunnerRequest(const RunnerRequest& request, GuestSource* guests, Clock* clock,
                          RunnerReport* report) {
  const absl::Status status = Execution(request, guests, clock, report).Run();
  if (status.ok()) return;
  report->mutable_error()->set_code(absl::StatusCodeToString(status.code()));
  const std::string reason = GetReason(status);
  report->mutable_error()->set_reason(reason.empty() ? "RUNNER_FAILED" : reason);
  report->mutable_error()->set_message(std::string(status.message()));
}

}  // namespace assay
