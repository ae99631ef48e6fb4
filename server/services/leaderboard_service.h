// LeaderboardService of the public API (callback API: handlers enqueue, never block).
#ifndef ASSAY_SERVER_SERVICES_LEADERBOARD_SERVICE_H_
#define ASSAY_SERVER_SERVICES_LEADERBOARD_SERVICE_H_

#include <memory>

#include "server/services/context.h"

namespace assay {

// Thread-safe. Includers that destroy it need <grpcpp/impl/service_type.h>.
std::unique_ptr<grpc::Service> MakeLeaderboardService(const ServiceContext& context);

}  // namespace assay

#endif  // ASSAY_SERVER_SERVICES_LEADERBOARD_SERVICE_H_
