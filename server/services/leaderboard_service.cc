#include "server/services/leaderboard_service.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "assay/v1/evaluation.pb.h"
#include "assay/v1/fleet.pb.h"
#include "assay/v1/leaderboard.grpc.pb.h"
#include "assay/v1/problem.pb.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/strings.h"
#include "kernels/problem.h"
#include "server/dispatch/dispatcher.h"
#include "server/services/admission.h"
#include "server/services/catalogue.h"
#include "server/services/unary_call.h"
#include "store/records.h"
#include "store/store.h"

namespace assay {
namespace {

absl::StatusOr<ResolvedWorkload> FindWorkload(const v1::Problem& problem, const std::string& text) {
  v1::WorkloadSelector selector;
  ASSAY_RETURN_IF_ERROR(ParseWorkloadSelector(text, &selector));
  return ResolveSelector(problem, selector);
}

std::string MeasuredWorkloads(const v1::Problem& problem) {
  std::vector<std::string> names;
  for (const v1::Workload& workload : problem.workloads()) {
    if (!workload.verify_only()) names.push_back(workload.name());
  }
  return absl::StrJoin(names, ", ");
}

class LeaderboardServiceImpl final : public v1::LeaderboardService::CallbackService {
 public:
  explicit LeaderboardServiceImpl(const ServiceContext& services) : services_(services) {}

  grpc::ServerUnaryReactor* GetLeaderboard(grpc::CallbackServerContext* context,
                                           const v1::GetLeaderboardRequest* request,
                                           v1::GetLeaderboardResponse* response) override {
    const UnaryCall call(services_, context, Rpc::kGetLeaderboard);
    const std::string problem = ProblemName(request->problem());
    const absl::StatusOr<std::string> workload = Check(*request, problem);
    if (!workload.ok()) return call.FinishNow(workload.status());
    const int entries_max = request->entries_max() == 0
                                ? limits::kPageSizeDefault
                                : std::min(request->entries_max(), limits::kPageSizeMax);
    return call.FinishOn(
        services_.reads,
        [this, problem, workload = *workload, request, entries_max, response]() -> absl::Status {
          ASSAY_ASSIGN_OR_RETURN(
              auto entries, services_.store->Leaderboard({.problem = problem,
                                                          .workload = workload,
                                                          .device_class = request->device_class(),
                                                          .contract = request->contract(),
                                                          .entries_max = entries_max}));
          if (entries.empty()) {
            ASSAY_RETURN_IF_ERROR(CheckDeviceClass(problem, request->device_class()));
          }
          for (v1::LeaderboardEntry& entry : entries) response->add_entries()->Swap(&entry);
          return absl::OkStatus();
        });
  }

 private:
  // The workload by the name that results have.
  absl::StatusOr<std::string> Check(const v1::GetLeaderboardRequest& request,
                                    const std::string& problem) const {
    ASSAY_RETURN_IF_ERROR(CheckResourceName("problems/", problem));
    const std::shared_ptr<const v1::Problem> known = services_.catalogue->Find(problem);
    if (known == nullptr) return ProblemNotFound(problem);
    if (request.entries_max() < 0) {
      return ErrorWithReason(
          absl::StatusCode::kInvalidArgument, "PAGE_SIZE_INVALID",
          absl::StrCat("entries_max is ", request.entries_max(),
                       "; use 0 for the default or up to ", limits::kPageSizeMax));
    }
    if (request.workload().empty()) return std::string();
    absl::StatusOr<ResolvedWorkload> workload = FindWorkload(*known, request.workload());
    if (workload.ok() && workload->verify_only) {
      return ErrorWithReason(
          absl::StatusCode::kInvalidArgument, "NOTHING_TO_MEASURE",
          absl::StrCat("workload '", workload->name,
                       "' is only verified, never measured, so nothing ranks on it; measured are: ",
                       MeasuredWorkloads(*known)));
    }
    if (workload.ok()) return std::move(workload->name);
    if (!GetReason(workload.status()).empty()) return workload.status();
    return ErrorWithReason(workload.status().code(), "WORKLOAD_INVALID",
                           Sv(workload.status().message()));
  }

  // For a leaderboard without results: is there any such class? Blocks.
  absl::Status CheckDeviceClass(const std::string& problem, const std::string& device_class) const {
    if (device_class.empty()) return absl::OkStatus();
    std::set<std::string> known;
    for (const v1::Worker& worker : services_.dispatcher->Workers()) {
      for (const v1::Device& device : worker.devices()) known.insert(device.device_class());
    }
    ASSAY_ASSIGN_OR_RETURN(const auto entries,
                           services_.store->Leaderboard({.problem = problem, .entries_max = 1}));
    for (const v1::LeaderboardEntry& entry : entries) known.insert(entry.device_class());
    if (known.contains(device_class)) return absl::OkStatus();
    return ErrorWithReason(
        absl::StatusCode::kNotFound, "DEVICE_CLASS_NOT_FOUND",
        absl::StrCat("no result and no worker is of device class '",
                     absl::CHexEscape(device_class.substr(0, limits::kNameBytesMax)),
                     "'; known: ", known.empty() ? "none" : absl::StrJoin(known, ", ")));
  }

  const ServiceContext services_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeLeaderboardService(const ServiceContext& context) {
  return std::make_unique<LeaderboardServiceImpl>(context);
}

}  // namespace assay
