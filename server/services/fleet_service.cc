#include "server/services/fleet_service.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "assay/v1/fleet.grpc.pb.h"
#include "base/status.h"
#include "server/dispatch/dispatcher.h"
#include "server/services/admission.h"
#include "server/services/page_token.h"
#include "server/services/unary_call.h"

namespace assay {
namespace {

constexpr char kListName[] = "workers";

class FleetServiceImpl final : public v1::FleetService::CallbackService {
 public:
  explicit FleetServiceImpl(const ServiceContext& services) : services_(services) {}

  grpc::ServerUnaryReactor* ListWorkers(grpc::CallbackServerContext* context,
                                        const v1::ListWorkersRequest* request,
                                        v1::ListWorkersResponse* response) override {
    const UnaryCall call(services_, context, Rpc::kListWorkers);
    return call.FinishWith([&] { return List(*request, response); });
  }

  grpc::ServerUnaryReactor* GetWorker(grpc::CallbackServerContext* context,
                                      const v1::GetWorkerRequest* request,
                                      v1::Worker* response) override {
    const UnaryCall call(services_, context, Rpc::kGetWorker);
    return call.FinishWith([&] { return Get(request->name(), response); });
  }

  grpc::ServerUnaryReactor* DrainWorker(grpc::CallbackServerContext* context,
                                        const v1::DrainWorkerRequest* request,
                                        v1::Worker* response) override {
    const UnaryCall call(services_, context, Rpc::kDrainWorker, request->name());
    return call.FinishWith([&] { return SetDraining(request->name(), true, response); });
  }

  grpc::ServerUnaryReactor* UndrainWorker(grpc::CallbackServerContext* context,
                                          const v1::UndrainWorkerRequest* request,
                                          v1::Worker* response) override {
    const UnaryCall call(services_, context, Rpc::kUndrainWorker, request->name());
    return call.FinishWith([&] { return SetDraining(request->name(), false, response); });
  }

 private:
  absl::Status List(const v1::ListWorkersRequest& request, v1::ListWorkersResponse* response) {
    ASSAY_ASSIGN_OR_RETURN(const Page page,
                           MakePage(kListName, request.page_size(), request.page_token()));
    std::vector<v1::Worker> workers = services_.dispatcher->Workers();
    std::sort(workers.begin(), workers.end(),
              [](const v1::Worker& a, const v1::Worker& b) { return a.name() < b.name(); });
    // The key of a page is the last name on it.
    auto it = std::find_if(workers.begin(), workers.end(),
                           [&](const v1::Worker& worker) { return worker.name() > page.after; });
    for (; it != workers.end() && response->workers_size() < page.size; ++it) {
      response->add_workers()->Swap(&*it);
    }
    if (it != workers.end() && response->workers_size() > 0) {
      response->set_next_page_token(
          EncodePageToken(kListName, response->workers(response->workers_size() - 1).name()));
    }
    return absl::OkStatus();
  }

  absl::Status Get(const std::string& name, v1::Worker* response) {
    ASSAY_RETURN_IF_ERROR(CheckResourceName("workers/", name));
    for (v1::Worker& worker : services_.dispatcher->Workers()) {
      if (worker.name() != name) continue;
      response->Swap(&worker);
      return absl::OkStatus();
    }
    return ErrorWithReason(
        absl::StatusCode::kNotFound, "WORKER_NOT_FOUND",
        absl::StrCat("'", name, "' is unknown; ListWorkers tells what there is"));
  }

  absl::Status SetDraining(const std::string& name, bool draining, v1::Worker* response) {
    ASSAY_RETURN_IF_ERROR(CheckResourceName("workers/", name));
    ASSAY_ASSIGN_OR_RETURN(*response, services_.dispatcher->SetDraining(name, draining));
    return absl::OkStatus();
  }

  const ServiceContext services_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeFleetService(const ServiceContext& context) {
  return std::make_unique<FleetServiceImpl>(context);
}

}  // namespace assay
