// A candidate on a real device.
//
// Before every call: all tensors are uploaded to new places, outputs and workspaces hold poison,
// module variables and shared memory hold nothing of earlier calls, and the caches are as asked.
// After it, outside of the time: guard zones are intact and inputs unchanged.
#ifndef ASSAY_WORKER_BACKEND_CUDA_REAL_SESSION_H_
#define ASSAY_WORKER_BACKEND_CUDA_REAL_SESSION_H_

#include <memory>

#include "worker/backend/cuda/device_context.h"
#include "worker/backend/cuda/device_session.h"

namespace assay {

// One at a time in a context. `context` and `health`, which may be null, outlive the session.
// CallTiming::duration_ns is the time between events around the launches of the plan; of a call
// with GuestCache::kLeave it contains the host's share. A session that ends with
// GuestEnd::device_unclean has lost the context.
std::unique_ptr<GuestSession> MakeRealSession(DeviceContext* context, DeviceHealthSource* health,
                                              DeviceSessionOptions options);

// What a result of the driver after a candidate's launch says; nullopt when the device or the
// machine is at fault, not the candidate.
std::optional<GuestEnd> EndOfResult(cuda::CUresult result, const std::string& name);

}  // namespace assay

#endif  // ASSAY_WORKER_BACKEND_CUDA_REAL_SESSION_H_
