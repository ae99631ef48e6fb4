// From runners' samples to one measurement, and the digests that name a result. Pure.
#ifndef ASSAY_WORKER_AGENT_AGGREGATE_H_
#define ASSAY_WORKER_AGENT_AGGREGATE_H_

#include <string>
#include <vector>

#include "kernels/expression/expression.h"
#include "kernels/problem.h"
#include "worker/measure/machine.h"

namespace assay {

namespace v1 {
class Environment;
class Measurement;
class ObservedWork;
class Outcome;
class RunnerSamples;
}  // namespace v1
namespace internal::v1 {
class WorkSpec;
}

// Joins the samples of `runners`; `caveats` are the machine's. Adds NOISY_ENVIRONMENT when a
// disturbed sample had to be kept or more than one in five were dropped.
void AggregateRunners(const std::vector<v1::RunnerSamples>& runners, const std::string& protocol,
                      const std::vector<std::string>& caveats, v1::Measurement* measurement);

// The observed arithmetic intensity of `observed`, and the declared one of `cost` beside it.
void SetIntensities(const WorkCost& cost, v1::ObservedWork* observed);

// What was run: problem, candidate, configuration, build, workloads, protocol, harness.
std::string ResultId(const internal::v1::WorkSpec& work, const ValueMap& configuration,
                     const v1::Outcome& outcome, const std::string& protocol);

// Where it was run. Nothing in it changes from boot to boot.
std::string EnvironmentId(const v1::Environment& environment, const MachineFacts& machine);

}  // namespace assay

#endif  // ASSAY_WORKER_AGENT_AGGREGATE_H_
