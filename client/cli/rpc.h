// Calls to the server: one channel, a deadline on every call, errors with the server's reason.
#ifndef ASSAY_CLIENT_CLI_RPC_H_
#define ASSAY_CLIENT_CLI_RPC_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "assay/v1/access.grpc.pb.h"
#include "assay/v1/candidate.grpc.pb.h"
#include "assay/v1/evaluation.grpc.pb.h"
#include "assay/v1/fleet.grpc.pb.h"
#include "assay/v1/leaderboard.grpc.pb.h"
#include "assay/v1/problem.grpc.pb.h"
#include "base/channel.h"

namespace assay {

// Not thread-safe.
class Connection {
 public:
  // Nothing is sent yet.
  explicit Connection(const Endpoint& endpoint);

  // The status of a finished call as absl::Status with the server's reason; an unreachable server
  // gets reason SERVER_UNREACHABLE and a hint.
  absl::Status ToStatus(const grpc::Status& status) const;

  // A context whose deadline is `timeout` from now. The call waits for the server to come up
  // meanwhile.
  static std::unique_ptr<grpc::ClientContext> Context(absl::Duration timeout = absl::Seconds(30));

  // Streams the evaluation from now on until it is final; survives a restart of the server by
  // resuming. `on_change` sees every snapshot. DEADLINE_EXCEEDED after `timeout`.
  absl::StatusOr<v1::Evaluation> WaitFor(
      const std::string& name, absl::Duration timeout,
      const std::function<void(const v1::Evaluation&)>& on_change);

  // Creates the evaluation, under a request id of its own when the request has none, so that the
  // one repetition after a lost answer cannot create it twice.
  absl::StatusOr<v1::Evaluation> Create(v1::CreateEvaluationRequest request);

  v1::ProblemService::Stub& problems() { return *problems_; }
  v1::CandidateService::Stub& candidates() { return *candidates_; }
  v1::EvaluationService::Stub& evaluations() { return *evaluations_; }
  v1::LeaderboardService::Stub& leaderboard() { return *leaderboard_; }
  v1::FleetService::Stub& fleet() { return *fleet_; }
  v1::AccessService::Stub& access() { return *access_; }

 private:
  std::string address_;
  std::unique_ptr<v1::ProblemService::Stub> problems_;
  std::unique_ptr<v1::CandidateService::Stub> candidates_;
  std::unique_ptr<v1::EvaluationService::Stub> evaluations_;
  std::unique_ptr<v1::LeaderboardService::Stub> leaderboard_;
  std::unique_ptr<v1::FleetService::Stub> fleet_;
  std::unique_ptr<v1::AccessService::Stub> access_;
};

// True for states that do not change any more.
bool IsFinal(v1::State state);

}  // namespace assay

#endif  // ASSAY_CLIENT_CLI_RPC_H_
