#include "server/services/leaderboard_service.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "assay/v1/leaderboard.grpc.pb.h"
#include "base/limits.h"
#include "base/status.h"
#include "server/services/admission.h"
#include "server/services/catalogue.h"
#include "server/services/unary_call.h"
#include "store/records.h"
#include "store/store.h"

namespace assay {
namespace {

class LeaderboardServiceImpl final : public v1::LeaderboardService::CallbackService {
 public:
  explicit LeaderboardServiceImpl(const ServiceContext& services) : services_(services) {}

  grpc::ServerUnaryReactor* GetLeaderboard(grpc::CallbackServerContext* context,
                                           const v1::GetLeaderboardRequest* request,
                                           v1::GetLeaderboardResponse* response) override {
    const UnaryCall call(services_, context, Rpc::kGetLeaderboard);
    const std::string problem = ProblemName(request->problem());
    const absl::Status valid = Check(*request, problem);
    if (!valid.ok()) return call.FinishNow(valid);
    const int entries_max = request->entries_max() == 0
                                ? limits::kPageSizeDefault
                                : std::min(request->entries_max(), limits::kPageSizeMax);
    return call.FinishOn(
        services_.reads, [this, problem, request, entries_max, response]() -> absl::Status {
          ASSAY_ASSIGN_OR_RETURN(
              auto entries, services_.store->Leaderboard(problem, request->workload(),
                                                         request->device_class(), entries_max));
          for (v1::LeaderboardEntry& entry : entries) response->add_entries()->Swap(&entry);
          return absl::OkStatus();
        });
  }

 private:
  absl::Status Check(const v1::GetLeaderboardRequest& request, const std::string& problem) const {
    ASSAY_RETURN_IF_ERROR(CheckResourceName("problems/", problem));
    if (services_.catalogue->Find(problem) == nullptr) {
      return ErrorWithReason(
          absl::StatusCode::kNotFound, "PROBLEM_NOT_FOUND",
          absl::StrCat("'", problem, "' is unknown; ListProblems tells what there is"));
    }
    if (request.entries_max() < 0) {
      return ErrorWithReason(
          absl::StatusCode::kInvalidArgument, "PAGE_SIZE_INVALID",
          absl::StrCat("entries_max is ", request.entries_max(),
                       "; use 0 for the default or up to ", limits::kPageSizeMax));
    }
    return absl::OkStatus();
  }

  const ServiceContext services_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeLeaderboardService(const ServiceContext& context) {
  return std::make_unique<LeaderboardServiceImpl>(context);
}

}  // namespace assay
