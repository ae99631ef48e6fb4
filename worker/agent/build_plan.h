// What has to be built for an evaluation. Pure.
#ifndef ASSAY_WORKER_AGENT_BUILD_PLAN_H_
#define ASSAY_WORKER_AGENT_BUILD_PLAN_H_

#include "kernels/expression/expression.h"
#include "worker/builder/builder.h"

namespace assay {

namespace v1 {
class Baseline;
class Candidate;
class Problem;
}  // namespace v1

BuildRequest CandidateBuild(const v1::Problem& problem, const v1::Candidate& candidate,
                            const ValueMap& configuration);
BuildRequest ReferenceBuild(const v1::Problem& problem);
BuildRequest BaselineBuild(const v1::Problem& problem, const v1::Baseline& baseline);

}  // namespace assay

#endif  // ASSAY_WORKER_AGENT_BUILD_PLAN_H_
