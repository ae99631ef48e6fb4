#include "server/services/candidate_service.h"

#include "absl/strings/str_cat.h"
#include "assay/v1/candidate.grpc.pb.h"
#include "base/limits.h"
#include "base/status.h"
#include "kernels/candidate.h"
#include "server/services/admission.h"
#include "server/services/catalogue.h"
#include "server/services/page_token.h"
#include "server/services/unary_call.h"
#include "store/records.h"
#include "store/store.h"

namespace assay {
namespace {

class CandidateServiceImpl final : public v1::CandidateService::CallbackService {
 public:
  explicit CandidateServiceImpl(const ServiceContext& services) : services_(services) {}

  grpc::ServerUnaryReactor* CreateCandidate(grpc::CallbackServerContext* context,
                                            const v1::CreateCandidateRequest* request,
                                            v1::Candidate* response) override {
    const UnaryCall call(services_, context, Rpc::kCreateCandidate);
    const auto create = [this, call, request, response] { Create(call, *request, response); };
    if (request->candidate().ByteSizeLong() > limits::kInlineAdmissionBytesMax) {
      return call.ContinueOn(services_.reads, create);
    }
    return call.Run(create);
  }

  grpc::ServerUnaryReactor* GetCandidate(grpc::CallbackServerContext* context,
                                         const v1::GetCandidateRequest* request,
                                         v1::Candidate* response) override {
    const UnaryCall call(services_, context, Rpc::kGetCandidate);
    const absl::Status valid = CheckResourceName("candidates/", request->name());
    if (!valid.ok()) return call.FinishNow(valid);
    return call.FinishOn(services_.reads, [this, request, response]() -> absl::Status {
      ASSAY_ASSIGN_OR_RETURN(*response, services_.store->GetCandidate(request->name()));
      return absl::OkStatus();
    });
  }

  grpc::ServerUnaryReactor* ListCandidates(grpc::CallbackServerContext* context,
                                           const v1::ListCandidatesRequest* request,
                                           v1::ListCandidatesResponse* response) override {
    const UnaryCall call(services_, context, Rpc::kListCandidates);
    const std::string problem = ProblemName(request->problem());
    if (!problem.empty()) {
      const absl::Status valid = CheckResourceName("problems/", problem);
      if (!valid.ok()) return call.FinishNow(valid);
      if (services_.catalogue->Find(problem) == nullptr) {
        return call.FinishNow(ProblemNotFound(problem));
      }
    }
    const std::string list = absl::StrCat("candidates of ", problem);
    auto page = MakePage(list, request->page_size(), request->page_token());
    if (!page.ok()) return call.FinishNow(page.status());
    return call.FinishOn(
        services_.reads,
        [this, problem, list, page = *std::move(page), response]() -> absl::Status {
          ASSAY_ASSIGN_OR_RETURN(auto listed, services_.store->ListCandidates(problem, page));
          for (v1::Candidate& candidate : listed.items) {
            response->add_candidates()->Swap(&candidate);
          }
          response->set_next_page_token(EncodePageToken(list, listed.next));
          return absl::OkStatus();
        });
  }

 private:
  void Create(const UnaryCall& call, const v1::CreateCandidateRequest& request,
              v1::Candidate* response) {
    v1::Candidate candidate = request.candidate();
    const absl::Status valid = services_.admission->AdmitCandidate("", &candidate);
    if (!valid.ok()) return call.Finish(valid);
    const size_t bytes = candidate.ByteSizeLong();
    absl::Status room = services_.writes->Acquire(1, bytes);
    if (room.ok() && call.has_token()) {
      room = services_.access->AddCandidateBytes(call.token(), bytes);
      if (!room.ok()) services_.writes->Release(1, bytes);
    }
    if (!room.ok()) return call.Finish(room);
    std::string fingerprint = CandidateFingerprint(candidate);
    services_.store->CreateCandidate(
        std::move(candidate), std::move(fingerprint),
        [this, call, bytes, response](absl::StatusOr<v1::Candidate> stored) {
          services_.writes->Release(1, bytes);
          if (stored.ok()) {
            services_.candidates->Put(*stored);
            response->Swap(&*stored);
          }
          call.Finish(stored.status());
        });
  }

  const ServiceContext services_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeCandidateService(const ServiceContext& context) {
  return std::make_unique<CandidateServiceImpl>(context);
}

}  // namespace assay
