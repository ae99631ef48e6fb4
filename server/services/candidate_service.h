// CandidateService of the public API (callback API: handlers validate and enqueue, never block).
#ifndef ASSAY_SERVER_SERVICES_CANDIDATE_SERVICE_H_
#define ASSAY_SERVER_SERVICES_CANDIDATE_SERVICE_H_

#include <memory>

#include "server/services/context.h"

namespace assay {

// Thread-safe. Includers that destroy it need <grpcpp/impl/service_type.h>.
std::unique_ptr<grpc::Service> MakeCandidateService(const ServiceContext& context);

}  // namespace assay

#endif  // ASSAY_SERVER_SERVICES_CANDIDATE_SERVICE_H_
