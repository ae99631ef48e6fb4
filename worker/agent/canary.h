// A tiny problem with a candidate that is known to be right, for a worker's check of itself.
#ifndef ASSAY_WORKER_AGENT_CANARY_H_
#define ASSAY_WORKER_AGENT_CANARY_H_

namespace assay {

namespace internal::v1 {
class WorkSpec;
}

void MakeCanary(internal::v1::WorkSpec* work);

}  // namespace assay

#endif  // ASSAY_WORKER_AGENT_CANARY_H_
