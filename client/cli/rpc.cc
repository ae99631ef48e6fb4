#include "client/cli/rpc.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "assay/internal/v1/rpc_status.pb.h"
#include "base/limits.h"
#include "base/random.h"
#include "base/status.h"

namespace assay {
namespace {

// "" when the server sent none: the error is the transport's or another server's.
std::string ReasonOf(const grpc::Status& status) {
  internal::v1::RpcStatus details;
  if (!details.ParseFromString(status.error_details())) return "";
  v1::ErrorDetail detail;
  for (const google::protobuf::Any& any : details.details()) {
    if (any.UnpackTo(&detail)) return detail.reason();
  }
  return "";
}

}  // namespace

Connection::Connection(const Endpoint& endpoint) : address_(endpoint.address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(static_cast<int>(limits::kMessageBytesMax));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  const auto channel = MakeChannel(endpoint, arguments);
  problems_ = v1::ProblemService::NewStub(channel);
  candidates_ = v1::CandidateService::NewStub(channel);
  evaluations_ = v1::EvaluationService::NewStub(channel);
  leaderboard_ = v1::LeaderboardService::NewStub(channel);
  fleet_ = v1::FleetService::NewStub(channel);
  access_ = v1::AccessService::NewStub(channel);
}

std::unique_ptr<grpc::ClientContext> Connection::Context(absl::Duration timeout) {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(timeout));
  return context;
}

absl::Status Connection::ToStatus(const grpc::Status& status) const {
  if (status.ok()) return absl::OkStatus();
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  const std::string reason = ReasonOf(status);
  if (!reason.empty()) return ErrorWithReason(code, reason, status.error_message());
  if (code == absl::StatusCode::kUnavailable) {
    return ErrorWithReason(code, "SERVER_UNREACHABLE",
                           absl::StrCat("no server at ", address_, " (", status.error_message(),
                                        "); start one with 'assay up', or name another with "
                                        "--server HOST:PORT or ASSAY_SERVER"));
  }
  return absl::Status(code, status.error_message());
}

bool IsFinal(v1::State state) {
  return state == v1::SUCCEEDED || state == v1::FAILED || state == v1::CANCELLED;
}

absl::StatusOr<v1::Evaluation> Connection::Create(v1::CreateEvaluationRequest request) {
  if (request.request_id().empty()) request.set_request_id(SecureRandomHex(16));
  v1::Evaluation evaluation;
  const auto call = [&] {
    return ToStatus(evaluations_->CreateEvaluation(Context().get(), request, &evaluation));
  };
  absl::Status status = call();
  if (absl::IsUnavailable(status)) status = call();
  if (!status.ok()) return status;
  return evaluation;
}

absl::StatusOr<v1::Evaluation> Connection::WaitFor(
    const std::string& name, absl::Duration timeout,
    const std::function<void(const v1::Evaluation&)>& on_change) {
  const absl::Time deadline = absl::Now() + timeout;
  v1::WatchEvaluationRequest request;
  request.set_name(name);
  absl::Duration pause = absl::Milliseconds(100);
  for (;;) {
    auto context = Context(std::max(deadline - absl::Now(), absl::Milliseconds(1)));
    auto reader = evaluations_->WatchEvaluation(context.get(), request);
    v1::WatchEvaluationResponse response;
    while (reader->Read(&response)) {
      pause = absl::Milliseconds(100);
      request.set_after_revision(response.evaluation().revision());
      on_change(response.evaluation());
      if (IsFinal(response.evaluation().state())) return std::move(*response.mutable_evaluation());
    }
    const absl::Status status = ToStatus(reader->Finish());
    // A restart of the server ends the stream; the evaluation itself goes on. So does it when the
    // stream ends at our own deadline, which is told below.
    const bool over = absl::IsDeadlineExceeded(status) && absl::Now() >= deadline;
    const bool transient = status.ok() || absl::IsUnavailable(status) || over;
    if (!transient) return Annotate(status, absl::StrCat("watching ", name));
    if (absl::Now() + pause >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat(name, " is not finished yet; watch it with 'assay evaluations watch ", name,
                       "' or wait longer with --timeout"));
    }
    absl::SleepFor(pause);
    pause = std::min(pause * 2, absl::Seconds(2));
  }
}

}  // namespace assay
