// From what happened to what is said: verdict, reason and message of an outcome. Pure.
#ifndef ASSAY_WORKER_AGENT_VERDICT_H_
#define ASSAY_WORKER_AGENT_VERDICT_H_

#include <string>
#include <string_view>
#include <vector>

#include "worker/builder/builder.h"

namespace assay {

namespace v1 {
class BuildReport;
class Outcome;
class WorkloadResult;
}  // namespace v1
namespace internal::v1 {
class GuestFault;
class RunnerWorkloadReport;
}  // namespace internal::v1

void FillBuildReport(const BuildResult& result, std::string_view compiler, v1::BuildReport* report);

// COMPILE_ERROR, or RESOURCE_EXCEEDED for a build that ran into a limit. The message is the
// result's, or without one the first errors.
void SetBuildVerdict(const BuildResult& result, v1::Outcome* outcome);

// By the kind of the fault; the reason is the kind's name, for a signal CRASHED.
void SetFaultVerdict(const internal::v1::GuestFault& fault, v1::Outcome* outcome);

// INCORRECT or NONDETERMINISTIC.
void SetWrongVerdict(const internal::v1::RunnerWorkloadReport& report, v1::Outcome* outcome);

// INVALID_PROBLEM.
void SetInvalidProblem(std::string_view reason, std::string_view message, v1::Outcome* outcome);

// PASSED, with the bound and the gap to it for every measured workload, and the baselines that this
// worker lacks.
void SetPassed(const std::vector<std::string>& missing_baselines, v1::Outcome* outcome);

// "y[3,1] is 2.5, expected 3" and the counts; empty when nothing was wrong.
std::string DescribeMismatch(const internal::v1::RunnerWorkloadReport& report);

}  // namespace assay

#endif  // ASSAY_WORKER_AGENT_VERDICT_H_
