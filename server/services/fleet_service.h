// FleetService of the public API. Answers from the dispatcher's memory, on the RPC thread.
#ifndef ASSAY_SERVER_SERVICES_FLEET_SERVICE_H_
#define ASSAY_SERVER_SERVICES_FLEET_SERVICE_H_

#include <memory>

#include "server/services/context.h"

namespace assay {

// Thread-safe. Includers that destroy it need <grpcpp/impl/service_type.h>.
std::unique_ptr<grpc::Service> MakeFleetService(const ServiceContext& context);

}  // namespace assay

#endif  // ASSAY_SERVER_SERVICES_FLEET_SERVICE_H_
