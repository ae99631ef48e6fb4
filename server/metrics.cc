#include "server/metrics.h"

#include <array>
#include <atomic>
#include <exception>
#include <limits>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "assay/v1/evaluation.pb.h"
#include "base/status.h"
#include "base/strings.h"
#include "prometheus/exposer.h"
#include "prometheus/text_serializer.h"
#include "server/access/access_control.h"
#include "server/dispatch/dispatcher.h"

namespace assay {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

// Every metric of the server. Labels are bounded: methods, codes, states and verdicts of the API.
struct MetricInfo {
  const char* name;
  MetricType type;
  const char* help;
};
constexpr MetricInfo kBuildInfo = {"assay_server_build_info", MetricType::Gauge,
                                   "Constant 1, labelled with the version of the server."};
constexpr MetricInfo kRpcCalls = {"assay_rpc_calls_total", MetricType::Counter,
                                  "Finished calls of the public API by method and code."};
constexpr MetricInfo kRpcDuration = {
    "assay_rpc_duration_seconds", MetricType::Histogram,
    "Time from a call's arrival to its answer by method; for WatchEvaluation the whole stream."};
constexpr MetricInfo kCreated = {"assay_evaluations_created_total", MetricType::Counter,
                                 "Evaluations acknowledged as durable."};
constexpr MetricInfo kAnswered = {"assay_evaluations_answered_from_store_total",
                                  MetricType::Counter,
                                  "Evaluations answered by an identical finished one."};
constexpr MetricInfo kFinished = {"assay_evaluations_finished_total", MetricType::Counter,
                                  "Evaluations that reached a final state, by state."};
constexpr MetricInfo kCompletions = {"assay_evaluations_completed_total", MetricType::Counter,
                                     "Evaluations judged, by verdict."};
constexpr MetricInfo kQueue = {"assay_dispatch_queue_evaluations", MetricType::Gauge,
                               "Evaluations that wait for a worker."};
constexpr MetricInfo kLeased = {"assay_dispatch_leased_evaluations", MetricType::Gauge,
                                "Evaluations that a worker runs now."};
constexpr MetricInfo kUnplaceable = {"assay_dispatch_unplaceable_evaluations", MetricType::Gauge,
                                     "Waiting evaluations that no registered worker can run."};
constexpr MetricInfo kOldest = {"assay_dispatch_oldest_queued_seconds", MetricType::Gauge,
                                "Age of the evaluation that waits longest; 0 when none waits."};
constexpr MetricInfo kWorkersActive = {"assay_dispatch_active_workers", MetricType::Gauge,
                                       "Workers that are connected and take leases."};
constexpr MetricInfo kGranted = {"assay_dispatch_leases_granted_total", MetricType::Counter,
                                 "Leases given to workers."};
constexpr MetricInfo kExpired = {"assay_dispatch_leases_expired_total", MetricType::Counter,
                                 "Leases that ended because the worker fell silent."};
constexpr MetricInfo kAbandoned = {"assay_dispatch_leases_abandoned_total", MetricType::Counter,
                                   "Leases that workers gave back without an outcome."};
constexpr MetricInfo kFenced = {"assay_dispatch_fenced_calls_total", MetricType::Counter,
                                "Worker calls refused because their fence was stale."};
constexpr MetricInfo kRecorded = {"assay_dispatch_completions_total", MetricType::Counter,
                                  "Outcomes recorded."};
constexpr MetricInfo kRepeated = {"assay_dispatch_completions_repeated_total", MetricType::Counter,
                                  "Completions that had been recorded before."};
constexpr MetricInfo kReadsQueued = {"assay_server_reads_queued_calls", MetricType::Gauge,
                                     "Reads that wait for a reader thread."};
constexpr MetricInfo kReadsRejected = {"assay_server_reads_rejected_total", MetricType::Counter,
                                       "Reads refused because too many waited."};
constexpr MetricInfo kWritesInFlight = {"assay_server_writes_in_flight_items", MetricType::Gauge,
                                        "Items accepted by a handler that are not durable yet."};
constexpr MetricInfo kWatchers = {"assay_server_watchers_streams", MetricType::Gauge,
                                  "Open WatchEvaluation streams."};
constexpr MetricInfo kProblems = {"assay_server_problems_items", MetricType::Gauge,
                                  "Problems in the catalogue."};
constexpr MetricInfo kRefusals = {"assay_access_refusals_total", MetricType::Counter,
                                  "Calls refused for want of access, by reason."};
constexpr MetricInfo kUnrecorded = {
    "assay_access_unrecorded_events_total", MetricType::Counter,
    "Events that the log of access lacks: too many at once, or their write failed."};

constexpr MetricInfo kCommit = {"assay_store_commit_seconds", MetricType::Histogram,
                                "Time of one commit of the store, its sync included."};
constexpr MetricInfo kGroup = {"assay_store_group_operations", MetricType::Histogram,
                               "Writes that became durable in one commit."};

constexpr size_t kRpcCount = static_cast<size_t>(Rpc::kCount);
constexpr const char* kRpcNames[kRpcCount] = {
    "CreateProblem",      "GetProblem",       "ListProblems",
    "RecordProblemAudit", "CreateCandidate",  "GetCandidate",
    "ListCandidates",     "CreateEvaluation", "BatchCreateEvaluations",
    "GetEvaluation",      "ListEvaluations",  "CancelEvaluation",
    "WatchEvaluation",    "GetLeaderboard",   "ListWorkers",
    "GetWorker",          "DrainWorker",      "UndrainWorker",
    "CreateToken",        "ListTokens",       "RevokeToken",
    "ListAccessEvents",
};
constexpr size_t kCodeCount = 17;
constexpr std::array<double, 12> kBucketsSeconds = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                                    0.05,   0.1,   0.25,   1,     5,    30};
// Up to limits::kStoreGroupOperationsMax.
constexpr std::array<double, 11> kBucketsOperations = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
constexpr size_t kStateCount = v1::State_ARRAYSIZE;
constexpr size_t kVerdictCount = v1::Verdict_ARRAYSIZE;

using Count = std::atomic<int64_t>;

// One row of a histogram; the last bucket takes what is above all bounds.
template <size_t kBounds>
struct Histogram {
  const std::array<double, kBounds>& bounds;
  double unit = 1;  // of `sum`, in the unit of the bounds
  std::array<Count, kBounds + 1> buckets = {};
  Count sum = 0;

  void Add(int64_t value);
  ClientMetric Read() const;
};

struct RpcCounts {
  std::array<Count, kCodeCount> codes = {};
  Histogram<kBucketsSeconds.size()> seconds{kBucketsSeconds, 1e-9};
};

MetricFamily Family(const MetricInfo& info) {
  MetricFamily family;
  family.name = info.name;
  family.help = info.help;
  family.type = info.type;
  return family;
}

void AddValue(double value, std::vector<ClientMetric::Label> labels, MetricFamily* family) {
  ClientMetric metric;
  metric.label = std::move(labels);
  metric.counter.value = value;
  metric.gauge.value = value;
  family->metric.push_back(std::move(metric));
}

MetricFamily Single(const MetricInfo& info, double value) {
  MetricFamily family = Family(info);
  AddValue(value, {}, &family);
  return family;
}

int64_t Load(const Count& count) { return count.load(std::memory_order_relaxed); }

void Bump(Count& count, int64_t by = 1) { count.fetch_add(by, std::memory_order_relaxed); }

template <size_t kBounds>
void Histogram<kBounds>::Add(int64_t value) {
  Bump(sum, value);
  size_t bucket = 0;
  while (bucket<kBounds&& static_cast<double>(value) * unit> bounds[bucket]) ++bucket;
  Bump(buckets[bucket]);
}

template <size_t kBounds>
ClientMetric Histogram<kBounds>::Read() const {
  ClientMetric metric;
  uint64_t cumulative = 0;
  for (size_t b = 0; b < buckets.size(); ++b) {
    cumulative += Load(buckets[b]);
    metric.histogram.bucket.push_back(
        {cumulative, b < kBounds ? bounds[b] : std::numeric_limits<double>::infinity()});
  }
  metric.histogram.sample_count = cumulative;
  metric.histogram.sample_sum = static_cast<double>(Load(sum)) * unit;
  return metric;
}

}  // namespace

class Metrics::Collector : public prometheus::Collectable {
 public:
  explicit Collector(std::string_view version) : version_(version) {}

  std::vector<MetricFamily> Collect() const override {
    std::vector<MetricFamily> families;
    MetricFamily build = Family(kBuildInfo);
    AddValue(1, {{"version", version_}}, &build);
    families.push_back(std::move(build));
    AddRpcs(&families);
    AddEvaluations(&families);
    for (const auto& [info, metric] :
         {std::pair(&kCommit, commits.Read()), {&kGroup, groups.Read()}}) {
      MetricFamily family = Family(*info);
      family.metric.push_back(metric);
      families.push_back(std::move(family));
    }
    if (sources.dispatch) AddDispatch(sources.dispatch(), &families);
    if (sources.reads_queued) families.push_back(Single(kReadsQueued, sources.reads_queued()));
    if (sources.reads_rejected_total) {
      families.push_back(Single(kReadsRejected, sources.reads_rejected_total()));
    }
    if (sources.writes_in_flight) {
      families.push_back(Single(kWritesInFlight, sources.writes_in_flight()));
    }
    if (sources.watchers) families.push_back(Single(kWatchers, sources.watchers()));
    if (sources.problems) families.push_back(Single(kProblems, sources.problems()));
    if (sources.access) AddAccess(sources.access(), &families);
    return families;
  }

  std::array<RpcCounts, kRpcCount> rpcs;
  std::array<Count, kStateCount> finished = {};
  std::array<Count, kVerdictCount> verdicts = {};
  Count created = 0;
  Count answered = 0;
  Histogram<kBucketsSeconds.size()> commits{kBucketsSeconds, 1e-9};
  Histogram<kBucketsOperations.size()> groups{kBucketsOperations};
  MetricSources sources;

 private:
  void AddRpcs(std::vector<MetricFamily>* families) const {
    MetricFamily calls = Family(kRpcCalls);
    MetricFamily duration = Family(kRpcDuration);
    for (size_t i = 0; i < kRpcCount; ++i) {
      const RpcCounts& counts = rpcs[i];
      for (size_t code = 0; code < kCodeCount; ++code) {
        const int64_t value = Load(counts.codes[code]);
        // The OK row always stands, so that rates exist from the start.
        if (value == 0 && code != 0) continue;
        AddValue(value,
                 {{"method", kRpcNames[i]},
                  {"code", absl::StatusCodeToString(static_cast<absl::StatusCode>(code))}},
                 &calls);
      }
      ClientMetric metric = counts.seconds.Read();
      metric.label = {{"method", kRpcNames[i]}};
      duration.metric.push_back(std::move(metric));
    }
    families->push_back(std::move(calls));
    families->push_back(std::move(duration));
  }

  void AddEvaluations(std::vector<MetricFamily>* families) const {
    families->push_back(Single(kCreated, Load(created)));
    families->push_back(Single(kAnswered, Load(answered)));
    MetricFamily states = Family(kFinished);
    for (v1::State state : {v1::SUCCEEDED, v1::FAILED, v1::CANCELLED}) {
      AddValue(Load(finished[state]), {{"state", v1::State_Name(state)}}, &states);
    }
    families->push_back(std::move(states));
    MetricFamily outcomes = Family(kCompletions);
    for (size_t verdict = 1; verdict < kVerdictCount; ++verdict) {
      AddValue(Load(verdicts[verdict]),
               {{"verdict", v1::Verdict_Name(static_cast<v1::Verdict>(verdict))}}, &outcomes);
    }
    families->push_back(std::move(outcomes));
  }

  static void AddAccess(const AccessCounters& counters, std::vector<MetricFamily>* families) {
    MetricFamily refusals = Family(kRefusals);
    for (size_t i = 0; i < kAccessRefusals.size(); ++i) {
      AddValue(counters.refusals[i], {{"reason", kAccessRefusals[i]}}, &refusals);
    }
    families->push_back(std::move(refusals));
    families->push_back(Single(kUnrecorded, counters.unrecorded_total));
  }

  static void AddDispatch(const DispatchCounters& c, std::vector<MetricFamily>* families) {
    const std::pair<const MetricInfo*, double> rows[] = {
        {&kQueue, c.queued},
        {&kLeased, c.leased},
        {&kUnplaceable, c.unplaceable},
        {&kOldest, c.oldest_queued_seconds},
        {&kWorkersActive, c.workers_active},
        {&kGranted, c.leases_granted_total},
        {&kExpired, c.leases_expired_total},
        {&kAbandoned, c.leases_abandoned_total},
        {&kFenced, c.fenced_total},
        {&kRecorded, c.completions_total},
        {&kRepeated, c.completions_repeated_total},
    };
    for (const auto& [info, value] : rows) families->push_back(Single(*info, value));
  }

  const std::string version_;
};

class Metrics::Listener {
 public:
  explicit Listener(const std::string& listen) : exposer(listen, 1) {}
  prometheus::Exposer exposer;
};

const char* RpcName(Rpc rpc) { return kRpcNames[static_cast<size_t>(rpc)]; }

Metrics::Metrics(std::string_view version) : collector_(std::make_shared<Collector>(version)) {}
Metrics::~Metrics() = default;

void Metrics::CountRpc(Rpc rpc, absl::StatusCode code, absl::Duration duration) {
  RpcCounts& counts = collector_->rpcs[static_cast<size_t>(rpc)];
  const size_t index = static_cast<size_t>(code);
  Bump(counts.codes[index < kCodeCount ? index : 2]);  // 2: UNKNOWN
  counts.seconds.Add(absl::ToInt64Nanoseconds(duration));
}

void Metrics::CountTransition(const v1::Evaluation& evaluation) {
  switch (evaluation.state()) {
    case v1::SUCCEEDED: {
      const size_t verdict = evaluation.outcome().verdict();
      if (verdict < kVerdictCount) Bump(collector_->verdicts[verdict]);
      break;
    }
    case v1::FAILED:
    case v1::CANCELLED:
      break;
    default:
      return;
  }
  Bump(collector_->finished[evaluation.state()]);
}

void Metrics::CountCreated(int64_t evaluations, int64_t answered_from_store) {
  Bump(collector_->created, evaluations);
  Bump(collector_->answered, answered_from_store);
}

void Metrics::CountCommit(size_t operations, absl::Duration duration) {
  collector_->commits.Add(absl::ToInt64Nanoseconds(duration));
  collector_->groups.Add(static_cast<int64_t>(operations));
}

void Metrics::SetSources(MetricSources sources) { collector_->sources = std::move(sources); }

std::string Metrics::Serialize() const {
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, collector_->Collect());
  return out.str();
}

void Metrics::StopExposing() { listener_.reset(); }

absl::StatusOr<int> Metrics::Expose(const std::string& listen) {
  // The library reports a port in use, or a malformed address, by an exception.
  try {
    listener_ = std::make_unique<Listener>(listen);
    listener_->exposer.RegisterCollectable(collector_);
    const std::vector<int> ports = listener_->exposer.GetListeningPorts();
    return ports.empty() ? 0 : ports[0];
  } catch (const std::exception& error) {
    return ErrorWithReason(absl::StatusCode::kUnavailable, "PORT_IN_USE",
                           absl::StrCat("cannot serve metrics on '", listen, "': ", error.what(),
                                        "; choose another --metrics-listen"));
  }
}

}  // namespace assay
