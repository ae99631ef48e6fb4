// A tiny problem with a candidate that is known to be right, for a worker's check of itself.
#ifndef ASSAY_WORKER_AGENT_CANARY_H_
#define ASSAY_WORKER_AGENT_CANARY_H_

namespace assay {

namespace internal::v1 {
class WorkSpec;
}

// For a device, a candidate in PTX; else one in C++.
void MakeCanary(bool device, internal::v1::WorkSpec* work);

}  // namespace assay

#endif  // ASSAY_WORKER_AGENT_CANARY_H_
