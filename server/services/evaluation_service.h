// EvaluationService of the public API: creation, reading, cancelling and watching of evaluations.
// Callback API: handlers validate and enqueue, never block; creation is acknowledged from the
// store's writer once it is durable.
#ifndef ASSAY_SERVER_SERVICES_EVALUATION_SERVICE_H_
#define ASSAY_SERVER_SERVICES_EVALUATION_SERVICE_H_

#include <memory>

#include "server/services/context.h"

namespace assay {

// Thread-safe. Includers that destroy it need <grpcpp/impl/service_type.h>.
std::unique_ptr<grpc::Service> MakeEvaluationService(const ServiceContext& context);

}  // namespace assay

#endif  // ASSAY_SERVER_SERVICES_EVALUATION_SERVICE_H_
