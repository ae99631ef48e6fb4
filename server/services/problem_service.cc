#include "server/services/problem_service.h"

#include "absl/strings/str_cat.h"
#include "assay/v1/problem.grpc.pb.h"
#include "base/status.h"
#include "server/services/admission.h"
#include "server/services/catalogue.h"
#include "server/services/page_token.h"
#include "server/services/unary_call.h"
#include "store/store.h"

namespace assay {
namespace {

constexpr char kListName[] = "problems";

// The digest leaves the summary out.
absl::Status CheckSameContent(const v1::Problem& stored, std::string_view digest,
                              std::string_view summary) {
  if (stored.digest() == digest && stored.summary() == summary) return absl::OkStatus();
  return ErrorWithReason(
      absl::StatusCode::kAlreadyExists, "PROBLEM_VERSION_EXISTS",
      absl::StrCat(stored.name(), " exists in version ", stored.version(), " with ",
                   stored.digest() == digest ? "another summary" : "other content",
                   "; raise `version` above it, or undo the change"));
}

class ProblemServiceImpl final : public v1::ProblemService::CallbackService {
 public:
  explicit ProblemServiceImpl(const ServiceContext& services) : services_(services) {}

  grpc::ServerUnaryReactor* GetProblem(grpc::CallbackServerContext* context,
                                       const v1::GetProblemRequest* request,
                                       v1::Problem* response) override {
    const UnaryCall call(services_, context, Rpc::kGetProblem);
    const absl::Status valid = CheckResourceName("problems/", request->name());
    if (!valid.ok()) return call.FinishNow(valid);
    return call.FinishOn(services_.reads, [this, request, response]() -> absl::Status {
      ASSAY_ASSIGN_OR_RETURN(*response, services_.store->GetProblem(request->name(), 0));
      return absl::OkStatus();
    });
  }

  grpc::ServerUnaryReactor* ListProblems(grpc::CallbackServerContext* context,
                                         const v1::ListProblemsRequest* request,
                                         v1::ListProblemsResponse* response) override {
    const UnaryCall call(services_, context, Rpc::kListProblems);
    auto page = MakePage(kListName, request->page_size(), request->page_token());
    if (!page.ok()) return call.FinishNow(page.status());
    return call.FinishOn(services_.reads,
                         [this, page = *std::move(page), response]() -> absl::Status {
                           ASSAY_ASSIGN_OR_RETURN(auto listed, services_.store->ListProblems(page));
                           for (v1::Problem& problem : listed.items) {
                             response->add_problems()->Swap(&problem);
                           }
                           response->set_next_page_token(EncodePageToken(kListName, listed.next));
                           return absl::OkStatus();
                         });
  }

  grpc::ServerUnaryReactor* CreateProblem(grpc::CallbackServerContext* context,
                                          const v1::CreateProblemRequest* request,
                                          v1::Problem* response) override {
    const UnaryCall call(services_, context, Rpc::kCreateProblem, request->problem().name());
    return call.ContinueOn(services_.reads, [this, call, request, response] {
      v1::Problem problem = request->problem();
      const absl::Status valid = services_.admission->AdmitProblem(&problem);
      if (!valid.ok()) return call.Finish(valid);
      if (request->validate_only()) {
        const absl::Status creatable = CheckAgainstStored(problem);
        if (creatable.ok()) response->Swap(&problem);
        return call.Finish(creatable);
      }
      const size_t bytes = problem.ByteSizeLong();
      const absl::Status room = services_.writes->Acquire(1, bytes);
      if (!room.ok()) return call.Finish(room);
      services_.store->CreateProblem(std::move(problem), [this, call, bytes, request, response](
                                                             absl::StatusOr<v1::Problem> stored) {
        services_.writes->Release(1, bytes);
        if (!stored.ok()) return call.Finish(stored.status());
        services_.catalogue->Put(*stored);
        // The store compares digests only.
        const absl::Status same =
            CheckSameContent(*stored, stored->digest(), request->problem().summary());
        if (same.ok()) response->Swap(&*stored);
        call.Finish(same);
      });
    });
  }

  grpc::ServerUnaryReactor* RecordProblemAudit(grpc::CallbackServerContext* context,
                                               const v1::RecordProblemAuditRequest* request,
                                               v1::Problem* response) override {
    const UnaryCall call(services_, context, Rpc::kRecordProblemAudit, request->audit().problem());
    const absl::Status valid = CheckResourceName("problems/", request->audit().problem());
    if (!valid.ok()) return call.FinishNow(valid);
    return call.ContinueOn(services_.reads, [this, call, request, response] {
      const size_t bytes = request->audit().ByteSizeLong();
      const absl::Status room = services_.writes->Acquire(1, bytes);
      if (!room.ok()) return call.Finish(room);
      services_.store->RecordProblemAudit(
          request->audit(), services_.clock->Now(),
          [this, call, bytes, response](absl::StatusOr<v1::Problem> stored) {
            services_.writes->Release(1, bytes);
            if (!stored.ok()) return call.Finish(stored.status());
            services_.catalogue->Put(*stored);
            response->Swap(&*stored);
            call.Finish(absl::OkStatus());
          });
    });
  }

 private:
  // What the store would say to the problem's version. Blocks.
  absl::Status CheckAgainstStored(const v1::Problem& problem) {
    const auto newest = services_.store->GetProblem(problem.name(), 0);
    if (absl::IsNotFound(newest.status())) return absl::OkStatus();
    if (!newest.ok()) return newest.status();
    if (problem.version() > newest->version()) return absl::OkStatus();
    const auto known = services_.store->GetProblem(problem.name(), problem.version());
    if (!known.ok() && !absl::IsNotFound(known.status())) return known.status();
    return CheckSameContent(known.ok() ? *known : *newest, problem.digest(), problem.summary());
  }

  const ServiceContext services_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeProblemService(const ServiceContext& context) {
  return std::make_unique<ProblemServiceImpl>(context);
}

}  // namespace assay
