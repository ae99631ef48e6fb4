// The server's Prometheus metrics. All names stand in one table in metrics.cc. Counting is a few
// atomic additions, so every RPC can afford it; gauges are read when somebody scrapes.
#ifndef ASSAY_SERVER_METRICS_H_
#define ASSAY_SERVER_METRICS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace assay {

namespace v1 {
class Evaluation;
}
struct AccessCounters;
struct DispatchCounters;

// RPCs of the public API, as metric label values.
enum class Rpc {
  kCreateProblem,
  kGetProblem,
  kListProblems,
  kRecordProblemAudit,
  kCreateCandidate,
  kGetCandidate,
  kListCandidates,
  kCreateEvaluation,
  kBatchCreateEvaluations,
  kGetEvaluation,
  kListEvaluations,
  kCancelEvaluation,
  kWatchEvaluation,
  kGetLeaderboard,
  kListWorkers,
  kGetWorker,
  kDrainWorker,
  kUndrainWorker,
  kCreateToken,
  kListTokens,
  kRevokeToken,
  kListAccessEvents,
  kCount,
};

// The method's name: "CreateProblem".
const char* RpcName(Rpc rpc);

// Read at every scrape, on the exposer's thread; none may block for long. Empty ones are left out.
struct MetricSources {
  std::function<DispatchCounters()> dispatch;
  std::function<size_t()> reads_queued;
  std::function<int64_t()> reads_rejected_total;
  std::function<size_t()> writes_in_flight;
  std::function<size_t()> watchers;
  std::function<size_t()> problems;
  std::function<AccessCounters()> access;
};

// Thread-safe.
class Metrics {
 public:
  explicit Metrics(std::string_view version);
  ~Metrics();

  void CountRpc(Rpc rpc, absl::StatusCode code, absl::Duration duration);
  // Of a change that an observer hears; counts final states and verdicts.
  void CountTransition(const v1::Evaluation& evaluation);
  void CountCreated(int64_t evaluations, int64_t answered_from_store);
  // Of one group of writes that became durable together.
  void CountCommit(size_t operations, absl::Duration duration);

  // Before Expose and Serialize.
  void SetSources(MetricSources sources);

  // The exposition text, as /metrics serves it.
  std::string Serialize() const;

  // Serves /metrics on "HOST:PORT" (port 0: any) and returns the port. UNAVAILABLE when it is in
  // use. At most once.
  absl::StatusOr<int> Expose(const std::string& listen);

  // No source is read any more once it returned. Idempotent.
  void StopExposing();

 private:
  class Collector;
  class Listener;
  std::shared_ptr<Collector> collector_;
  std::unique_ptr<Listener> listener_;
};

}  // namespace assay

#endif  // ASSAY_SERVER_METRICS_H_
