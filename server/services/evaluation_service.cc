#include "server/services/evaluation_service.h"

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "assay/v1/evaluation.grpc.pb.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/strings.h"
#include "server/access/access_control.h"
#include "server/dispatch/dispatcher.h"
#include "server/services/admission.h"
#include "server/services/catalogue.h"
#include "server/services/filter.h"
#include "server/services/identity.h"
#include "server/services/page_token.h"
#include "server/services/unary_call.h"
#include "server/services/watch_hub.h"
#include "server/services/watch_reactor.h"
#include "store/store.h"

namespace assay {
namespace {

// The stored candidates that a request names; null where it names none.
struct NamedCandidates {
  std::shared_ptr<const v1::Candidate> candidate;
  std::shared_ptr<const v1::Candidate> baseline;
};

// gRPC hands requests out as const, but made them for this call alone and reads them no more; a
// copy of every source is saved by taking them apart.
template <typename Request>
Request* Own(const Request* request) {
  return const_cast<Request*>(request);
}

class EvaluationServiceImpl final : public v1::EvaluationService::CallbackService {
 public:
  explicit EvaluationServiceImpl(const ServiceContext& services) : services_(services) {}

  grpc::ServerUnaryReactor* CreateEvaluation(grpc::CallbackServerContext* context,
                                             const v1::CreateEvaluationRequest* request,
                                             v1::Evaluation* response) override {
    const UnaryCall call(services_, context, Rpc::kCreateEvaluation);
    const size_t bytes = request->ByteSizeLong();
    std::optional<NamedCandidates> cached;
    const bool reads_first =
        request->allow_stored_answer() || !request->evaluation().replay_of().empty();
    if (!reads_first && bytes <= limits::kInlineAdmissionBytesMax) {
      cached = CachedCandidates(*request);
    }
    if (!cached.has_value()) {
      return call.ContinueOn(services_.reads, [this, call, request, bytes, response] {
        CreateOne(call, Prepare(Own(request)), bytes, response);
      });
    }
    // Nothing to read: the common case of an inline candidate stays on this thread.
    return call.Run([&] {
      CreateOne(
          call,
          services_.admission->Admit(Own(request), cached->candidate.get(), cached->baseline.get()),
          bytes, response);
    });
  }

  grpc::ServerUnaryReactor* BatchCreateEvaluations(
      grpc::CallbackServerContext* context, const v1::BatchCreateEvaluationsRequest* request,
      v1::BatchCreateEvaluationsResponse* response) override {
    const UnaryCall call(services_, context, Rpc::kBatchCreateEvaluations);
    const size_t count = static_cast<size_t>(request->requests_size());
    if (count == 0 || count > limits::kBatchMax) {
      return call.FinishNow(
          ErrorWithReason(absl::StatusCode::kInvalidArgument, "BATCH_SIZE_INVALID",
                          absl::StrCat(count, " requests; a batch has 1 to ", limits::kBatchMax)));
    }
    return call.ContinueOn(services_.reads, [this, call, request, response] {
      CreateBatch(call, Own(request), response);
    });
  }

  grpc::ServerUnaryReactor* GetEvaluation(grpc::CallbackServerContext* context,
                                          const v1::GetEvaluationRequest* request,
                                          v1::Evaluation* response) override {
    const UnaryCall call(services_, context, Rpc::kGetEvaluation);
    const absl::Status valid = CheckResourceName("evaluations/", request->name());
    if (!valid.ok()) return call.FinishNow(valid);
    return call.FinishOn(services_.reads, [this, request, response]() -> absl::Status {
      ASSAY_ASSIGN_OR_RETURN(
          *response, services_.store->GetEvaluation(request->name(), request->include_samples()));
      services_.dispatcher->Decorate(response);
      return absl::OkStatus();
    });
  }

  grpc::ServerUnaryReactor* ListEvaluations(grpc::CallbackServerContext* context,
                                            const v1::ListEvaluationsRequest* request,
                                            v1::ListEvaluationsResponse* response) override {
    const UnaryCall call(services_, context, Rpc::kListEvaluations);
    auto conditions = ParseEvaluationFilter(request->filter());
    if (!conditions.ok()) return call.FinishNow(conditions.status());
    for (const EvaluationCondition& condition : *conditions) {
      if (condition.field == EvaluationCondition::Field::kProblem &&
          condition.op == EvaluationCondition::Operator::kEqual &&
          services_.catalogue->Find(condition.text) == nullptr) {
        return call.FinishNow(ProblemNotFound(condition.text));
      }
    }
    const std::string list = absl::StrCat("evaluations where ", request->filter());
    auto page = MakePage(list, request->page_size(), request->page_token());
    if (!page.ok()) return call.FinishNow(page.status());
    return call.FinishOn(services_.reads,
                         [this, conditions = *std::move(conditions), page = *std::move(page), list,
                          response]() -> absl::Status {
                           ASSAY_ASSIGN_OR_RETURN(
                               auto listed, services_.store->ListEvaluations(conditions, page));
                           for (v1::Evaluation& evaluation : listed.items) {
                             services_.dispatcher->Decorate(&evaluation);
                             response->add_evaluations()->Swap(&evaluation);
                           }
                           response->set_next_page_token(EncodePageToken(list, listed.next));
                           return absl::OkStatus();
                         });
  }

  grpc::ServerUnaryReactor* CancelEvaluation(grpc::CallbackServerContext* context,
                                             const v1::CancelEvaluationRequest* request,
                                             v1::Evaluation* response) override {
    const UnaryCall call(services_, context, Rpc::kCancelEvaluation, request->name());
    const absl::Status valid = CheckResourceName("evaluations/", request->name());
    if (!valid.ok()) return call.FinishNow(valid);
    if (!call.has_token()) return call.Run([&] { Cancel(call, request->name(), response); });
    return call.ContinueOn(services_.reads, [this, call, request, response] {
      const auto stored = services_.store->GetEvaluation(request->name(), false);
      if (!stored.ok()) return call.Finish(stored.status());
      // A second run is the server's: without it a first place would go unproven.
      const bool is_second = !stored->confirms().empty();
      if (is_second || stored->creator() != call.token()) {
        const absl::Status allowed =
            call.DemandAdmin(is_second ? "cancelling the second run of what would rank first"
                                       : "cancelling an evaluation of another token");
        if (!allowed.ok()) return call.Finish(allowed);
      }
      Cancel(call, request->name(), response);
    });
  }

  grpc::ServerWriteReactor<v1::WatchEvaluationResponse>* WatchEvaluation(
      grpc::CallbackServerContext* context, const v1::WatchEvaluationRequest* request) override {
    return WatchReactor::Start(services_, *context, *request);
  }

 private:
  void Cancel(const UnaryCall& call, const std::string& name, v1::Evaluation* response) {
    services_.dispatcher->Cancel(name, [call, response](absl::StatusOr<v1::Evaluation> cancelled) {
      if (cancelled.ok()) response->Swap(&*cancelled);
      call.Finish(cancelled.status());
    });
  }

  // Nothing when a named candidate is not in memory.
  std::optional<NamedCandidates> CachedCandidates(const v1::CreateEvaluationRequest& request) {
    NamedCandidates named;
    for (const auto& [name, out] :
         {std::pair(&request.evaluation().candidate(), &named.candidate),
          {&request.evaluation().baseline_candidate(), &named.baseline}}) {
      if (name->empty()) continue;
      *out = services_.candidates->Find(*name);
      if (*out == nullptr) return std::nullopt;
    }
    return named;
  }

  // Null when it is not stored. Blocks when it is not cached.
  absl::StatusOr<std::shared_ptr<const v1::Candidate>> FindCandidate(const std::string& name) {
    if (!CheckResourceName("candidates/", name).ok()) return nullptr;  // Admit says what is wrong
    if (auto cached = services_.candidates->Find(name)) return cached;
    auto stored = services_.store->GetCandidate(name);
    if (absl::IsNotFound(stored.status())) return nullptr;
    if (!stored.ok()) return stored.status();
    services_.candidates->Put(*stored);
    return std::make_shared<const v1::Candidate>(*std::move(stored));
  }

  // Admission with everything it needs from the store. Blocks.
  absl::StatusOr<NewEvaluation> Prepare(v1::CreateEvaluationRequest* request) {
    if (!request->evaluation().replay_of().empty()) return PrepareReplay(*request);
    const bool allow_stored_answer = request->allow_stored_answer();
    NamedCandidates named;
    ASSAY_ASSIGN_OR_RETURN(named.candidate, FindCandidate(request->evaluation().candidate()));
    ASSAY_ASSIGN_OR_RETURN(named.baseline,
                           FindCandidate(request->evaluation().baseline_candidate()));
    ASSAY_ASSIGN_OR_RETURN(
        NewEvaluation admitted,
        services_.admission->Admit(request, named.candidate.get(), named.baseline.get()));
    if (allow_stored_answer) {
      ASSAY_RETURN_IF_ERROR(AnswerFromStore(&admitted.evaluation));
    }
    return admitted;
  }

  // What is replayed is what was run: an evaluation that another one answered stands for that.
  // Blocks.
  absl::StatusOr<NewEvaluation> PrepareReplay(const v1::CreateEvaluationRequest& request) {
    const std::string& name = request.evaluation().replay_of();
    ASSAY_RETURN_IF_ERROR(CheckResourceName("evaluations/", name));
    ASSAY_ASSIGN_OR_RETURN(v1::Evaluation original, services_.store->GetEvaluation(name, false));
    if (!original.answered_by().empty()) {
      ASSAY_ASSIGN_OR_RETURN(original,
                             services_.store->GetEvaluation(original.answered_by(), false));
    }
    ASSAY_ASSIGN_OR_RETURN(const RanOn ran_on, services_.store->GetRanOn(original.name()));
    return services_.admission->AdmitReplay(request, original, ran_on,
                                            services_.dispatcher->Workers());
  }

  // Looks for an identical finished evaluation in the environment of every worker that could run
  // this one. Blocks.
  absl::Status AnswerFromStore(v1::Evaluation* evaluation) {
    const auto problem = services_.catalogue->Find(evaluation->problem());
    if (problem == nullptr) return absl::OkStatus();
    std::set<std::string> identities;
    for (const v1::Worker& worker : services_.dispatcher->Workers()) {
      if (worker.state() == v1::Worker::LOST) continue;
      for (const v1::Device& device : worker.devices()) {
        if (!DeviceMatches(evaluation->device_class(), device)) continue;
        identities.insert(
            EvaluationIdentity(*evaluation, *problem, worker.environment(), device.device_class()));
      }
    }
    for (const std::string& identity : identities) {
      if (identity.empty()) continue;
      auto found = services_.store->FindByIdentity(identity);
      if (absl::IsNotFound(found.status())) continue;
      if (!found.ok()) return found.status();
      evaluation->set_state(v1::SUCCEEDED);
      evaluation->set_answered_by(found->name());
      evaluation->set_worker(found->worker());
      evaluation->mutable_outcome()->Swap(found->mutable_outcome());
      *evaluation->mutable_timeline()->mutable_complete_time() = evaluation->create_time();
      return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  void CreateOne(const UnaryCall& call, absl::StatusOr<NewEvaluation> admitted, size_t bytes,
                 v1::Evaluation* response) {
    if (!admitted.ok()) return call.Finish(admitted.status());
    std::vector<NewEvaluation> evaluations;
    evaluations.push_back(*std::move(admitted));
    Write(call, std::move(evaluations), bytes, [response](std::vector<CreatedEvaluation>& created) {
      response->Swap(&created[0].evaluation);
    });
  }

  void CreateBatch(const UnaryCall& call, v1::BatchCreateEvaluationsRequest* request,
                   v1::BatchCreateEvaluationsResponse* response) {
    const size_t bytes = request->ByteSizeLong();
    std::vector<NewEvaluation> evaluations;
    evaluations.reserve(request->requests_size());
    for (int i = 0; i < request->requests_size(); ++i) {
      auto admitted = Prepare(request->mutable_requests(i));
      if (!admitted.ok()) {
        return call.Finish(Annotate(admitted.status(), absl::StrCat("requests[", i, "]")));
      }
      evaluations.push_back(*std::move(admitted));
    }
    Write(call, std::move(evaluations), bytes, [response](std::vector<CreatedEvaluation>& created) {
      for (CreatedEvaluation& each : created) {
        response->add_evaluations()->Swap(&each.evaluation);
      }
    });
  }

  // Stores, then queues, then answers by `respond`, all without blocking this thread.
  template <typename Respond>
  void Write(const UnaryCall& call, std::vector<NewEvaluation> evaluations, size_t bytes,
             Respond respond) {
    const size_t count = evaluations.size();
    const absl::Status capacity = services_.dispatcher->CheckCapacity(count);
    if (!capacity.ok()) return call.Finish(capacity);
    const std::vector<std::string> counted = SetCreator(call, &evaluations);
    const absl::Status quota =
        counted.empty() ? absl::OkStatus() : services_.access->AddUnfinished(call.token(), counted);
    if (!quota.ok()) return call.Finish(quota);
    absl::Status room = services_.writes->Acquire(count, bytes);
    if (room.ok() && call.has_token()) {
      room = services_.access->AddCandidateBytes(call.token(), bytes);
      if (!room.ok()) services_.writes->Release(count, bytes);
    }
    if (!room.ok()) {
      ForgetCounted(call, counted, room);
      return call.Finish(room);
    }
    services_.store->CreateEvaluations(
        std::move(evaluations), [this, call, count, bytes, respond,
                                 counted](absl::StatusOr<std::vector<CreatedEvaluation>> created) {
          // Queueing and answering a group takes as long as storing it; on the writer's thread one
          // core would wait for the other.
          auto reply = [this, call, count, bytes, respond, counted,
                        created = std::make_shared<absl::StatusOr<std::vector<CreatedEvaluation>>>(
                            std::move(created))] {
            services_.writes->Release(count, bytes);
            ForgetCounted(call, counted, *created);
            if (created->ok()) {
              Enqueue(**created);
              respond(**created);
            }
            call.Finish(created->status());
          };
          if (!services_.replies->Submit(reply).ok()) reply();
        });
  }

  // Names of the evaluations that a token's quota counts; none without a token.
  static std::vector<std::string> SetCreator(const UnaryCall& call,
                                             std::vector<NewEvaluation>* evaluations) {
    std::vector<std::string> names;
    if (!call.has_token()) return names;
    for (NewEvaluation& each : *evaluations) {
      each.evaluation.set_creator(call.token());
      names.push_back(each.evaluation.name());
    }
    return names;
  }

  // Takes from the quota what was counted and is not unfinished: all after a failure, otherwise
  // those that existed under another name or were answered at once.
  void ForgetCounted(const UnaryCall& call, const std::vector<std::string>& counted,
                     const absl::StatusOr<std::vector<CreatedEvaluation>>& created) {
    for (size_t i = 0; i < counted.size(); ++i) {
      if (created.ok() && !(*created)[i].existed &&
          (*created)[i].evaluation.state() == v1::QUEUED) {
        continue;
      }
      services_.access->RemoveUnfinished(call.token(), counted[i]);
    }
  }

  void Enqueue(std::vector<CreatedEvaluation>& created) {
    // Lent to the dispatcher and taken back, not copied.
    std::vector<v1::Evaluation> queued;
    std::vector<v1::Evaluation*> lenders;
    int64_t fresh_count = 0;
    int64_t answered_count = 0;
    for (CreatedEvaluation& each : created) {
      if (each.existed) continue;  // queued when it was created
      ++fresh_count;
      if (each.evaluation.state() == v1::QUEUED) {
        queued.emplace_back().Swap(&each.evaluation);
        lenders.push_back(&each.evaluation);
      } else {
        ++answered_count;
        services_.metrics->CountTransition(each.evaluation);
      }
    }
    services_.metrics->CountCreated(fresh_count, answered_count);
    if (!queued.empty()) services_.dispatcher->Enqueue(queued);
    for (size_t i = 0; i < queued.size(); ++i) lenders[i]->Swap(&queued[i]);
    for (CreatedEvaluation& each : created) services_.dispatcher->Decorate(&each.evaluation);
  }

  const ServiceContext services_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeEvaluationService(const ServiceContext& context) {
  return std::make_unique<EvaluationServiceImpl>(context);
}

}  // namespace assay
