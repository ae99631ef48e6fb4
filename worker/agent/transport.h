// The coordinator as an agent sees it, so that the agent's loop is tested without a network.
#ifndef ASSAY_WORKER_AGENT_TRANSPORT_H_
#define ASSAY_WORKER_AGENT_TRANSPORT_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/channel.h"

namespace assay {

namespace internal::v1 {
class AbandonLeaseRequest;
class AcquireLeaseRequest;
class AcquireLeaseResponse;
class CompleteLeaseRequest;
class CompleteLeaseResponse;
class RegisterWorkerRequest;
class RegisterWorkerResponse;
class RenewLeaseRequest;
class RenewLeaseResponse;
}  // namespace internal::v1

// Thread-safe. Every call blocks for at most `timeout`. The reasons of errors (GetReason) are the
// coordinator's: SESSION_UNKNOWN, SESSION_SUPERSEDED, LEASE_FENCED.
class DispatchTransport {
 public:
  virtual ~DispatchTransport() = default;
  virtual absl::Status Register(const internal::v1::RegisterWorkerRequest& request,
                                absl::Duration timeout,
                                internal::v1::RegisterWorkerResponse* response) = 0;
  virtual absl::Status Acquire(const internal::v1::AcquireLeaseRequest& request,
                               absl::Duration timeout,
                               internal::v1::AcquireLeaseResponse* response) = 0;
  virtual absl::Status Renew(const internal::v1::RenewLeaseRequest& request, absl::Duration timeout,
                             internal::v1::RenewLeaseResponse* response) = 0;
  virtual absl::Status Complete(const internal::v1::CompleteLeaseRequest& request,
                                absl::Duration timeout,
                                internal::v1::CompleteLeaseResponse* response) = 0;
  virtual absl::Status Abandon(const internal::v1::AbandonLeaseRequest& request,
                               absl::Duration timeout) = 0;
  // Ends a blocked Acquire with CANCELLED, and every later one at once.
  virtual void CancelAcquire() = 0;
};

// Over gRPC. Connects lazily and again after a restart of the server.
std::unique_ptr<DispatchTransport> MakeGrpcTransport(const Endpoint& server);

}  // namespace assay

#endif  // ASSAY_WORKER_AGENT_TRANSPORT_H_
