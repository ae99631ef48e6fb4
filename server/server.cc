#include "server/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/impl/service_type.h>

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/status.h"
#include "server/access/access_control.h"
#include "server/access/access_service.h"
#include "server/access/listen_credentials.h"
#include "server/dispatch/dispatch_service.h"
#include "server/dispatch/dispatcher.h"
#include "server/executor.h"
#include "server/metrics.h"
#include "server/problem_folder.h"
#include "server/services/admission.h"
#include "server/services/candidate_service.h"
#include "server/services/catalogue.h"
#include "server/services/context.h"
#include "server/services/evaluation_service.h"
#include "server/services/fleet_service.h"
#include "server/services/identity.h"
#include "server/services/ids.h"
#include "server/services/leaderboard_service.h"
#include "server/services/problem_service.h"
#include "server/services/watch_hub.h"
#include "store/sqlite/sqlite_store.h"

namespace assay {
namespace {

constexpr char kVersion[] = ASSAY_VERSION;
constexpr int kReaderCount = 2;
// What the messages of calls in flight may take together; beyond it gRPC reads more slowly.
constexpr size_t kMessageMemoryBytes = size_t{1} << 30;
// Calls in flight are short and watches are ended first; what still stands then, the long polls of
// workers, is cancelled.
constexpr std::chrono::seconds kShutdownGrace(2);

// How long after its token an open stream may last.
constexpr absl::Duration kExpiryCheckInterval = absl::Milliseconds(250);

constexpr const char* kServiceNames[] = {
    "assay.v1.ProblemService",           "assay.v1.CandidateService", "assay.v1.EvaluationService",
    "assay.v1.LeaderboardService",       "assay.v1.FleetService",     "assay.v1.AccessService",
    "assay.internal.v1.DispatchService",
};

// Publishes copies of the database, one at a time, until it is destroyed. Owns its thread.
class Publisher {
 public:
  Publisher(Store* store, std::string path, absl::Duration interval)
      : store_(store), path_(std::move(path)), interval_(interval), thread_([this] { Run(); }) {}

  ~Publisher() {
    {
      absl::MutexLock lock(&mutex_);
      stopping_ = true;
    }
    thread_.join();
  }

 private:
  void Run() {
    while (true) {
      const absl::Status published = store_->PublishCopy(path_);
      if (!published.ok()) {
        Log(LogLevel::kWarning, "publish-failed",
            {{"path", path_}, {"error", std::string(published.message())}});
      }
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_), interval_)) return;
    }
  }

  Store* const store_;
  const std::string path_;
  const absl::Duration interval_;
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the rest
};

// Ends the streams of tokens that expire, which no call and no message would.
class StreamGuard {
 public:
  StreamGuard(AccessControl* access, WatchHub* watches)
      : access_(access), watches_(watches), thread_([this] { Run(); }) {}

  ~StreamGuard() {
    stop_.Notify();
    thread_.join();
  }

 private:
  void Run() {
    while (!stop_.WaitForNotificationWithTimeout(kExpiryCheckInterval)) {
      if (access_->TakeExpiredStreams()) watches_->CheckAccess();
    }
  }

  AccessControl* const access_;
  WatchHub* const watches_;
  absl::Notification stop_;
  std::thread thread_;  // last: it uses the rest
};

std::string HostOf(const std::string& listen) { return listen.substr(0, listen.rfind(':')); }

}  // namespace

// In order of construction; destroyed in reverse.
struct AssayServer::Parts {
  explicit Parts(Clock* clock) : clock(clock) {}
  // A scrape must not meet half of the parts.
  ~Parts() { metrics.StopExposing(); }

  Clock* const clock;
  Metrics metrics{kVersion};
  // Before the store: its last writes still report here.
  std::unique_ptr<AccessControl> access;
  std::unique_ptr<Store> store;
  Catalogue catalogue;
  CandidateCache candidates{limits::kCandidateCacheMax};
  EvaluationIds ids{clock};
  Admission admission{{.clock = clock, .catalogue = &catalogue, .ids = &ids}};
  WatchHub watches{limits::kWatchersMax};
  WriteBudget writes{limits::kWritesInFlightMax, limits::kWriteBytesInFlightMax};
  std::unique_ptr<Dispatcher> dispatcher;
  std::unique_ptr<Executor> reads;
  std::unique_ptr<Executor> replies;
  std::vector<std::unique_ptr<grpc::Service>> services;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<Publisher> publisher;
  std::unique_ptr<StreamGuard> stream_guard;

  absl::Status OpenStore(const ServerOptions& options);
  absl::Status StartAccess(const ServerOptions& options);
  absl::Status LoadProblems(const std::string& directory);
  absl::Status StartDispatcher();
  void MakeServices();
  absl::StatusOr<int> Bind(const std::string& listen,
                           const std::shared_ptr<grpc::ServerCredentials>& credentials);
  void SetServing(bool serving);
};

absl::Status AssayServer::Parts::OpenStore(const ServerOptions& options) {
  SqliteStoreOptions store_options;
  store_options.directory = options.data_directory;
  store_options.reader_count = kReaderCount;
  store_options.on_commit = [this](size_t operations, absl::Duration commit) {
    metrics.CountCommit(operations, commit);
  };
  ASSAY_ASSIGN_OR_RETURN(store, OpenSqliteStore(store_options));
  return catalogue.Load(*store);
}

absl::Status AssayServer::Parts::StartAccess(const ServerOptions& options) {
  AccessControl::Options access_options;
  access_options.clock = clock;
  access_options.store = store.get();
  access_options.are_tokens_required = AreTokensRequired(options);
  access_options.are_worker_certificates_required = !options.client_ca_path.empty();
  access = std::make_unique<AccessControl>(access_options);
  ASSAY_RETURN_IF_ERROR(access->Load());
  Log(LogLevel::kInfo, "access",
      {{"tls", options.tls_cert_path.empty() ? "no" : "yes"},
       {"worker_certificates", options.client_ca_path.empty() ? "no" : "yes"},
       {"tokens_required", access_options.are_tokens_required ? "yes" : "no"},
       {"tokens", absl::StrCat(access->token_count())}});
  if (access_options.are_tokens_required && access->token_count() == 0) {
    Log(LogLevel::kWarning, "no-token",
        {{"do", "stop, and create the first one with --create-admin-token NAME"}});
  }
  return absl::OkStatus();
}

absl::Status AssayServer::Parts::LoadProblems(const std::string& directory) {
  ASSAY_ASSIGN_OR_RETURN(const ProblemFolderReport report,
                         LoadProblemFolder(directory, admission, store.get(), &catalogue));
  for (const std::string& error : report.errors) {
    Log(LogLevel::kError, "problem-refused", {{"error", error}});
  }
  Log(LogLevel::kInfo, "problems-loaded",
      {{"folder", directory},
       {"created", absl::StrCat(report.created_count)},
       {"unchanged", absl::StrCat(report.unchanged_count)},
       {"refused", absl::StrCat(report.errors.size())}});
  return absl::OkStatus();
}

absl::Status AssayServer::Parts::StartDispatcher() {
  DispatcherOptions options;
  options.clock = clock;
  options.store = store.get();
  options.lease_duration = absl::Seconds(limits::kLeaseSeconds);
  options.attempts_max = limits::kAttemptsMax;
  options.identity = [this](const v1::Evaluation& evaluation, const v1::Worker& worker,
                            const v1::Device& device) {
    const std::shared_ptr<const v1::Problem> problem = catalogue.Find(evaluation.problem());
    return problem == nullptr ? std::string()
                              : EvaluationIdentity(evaluation, *problem, worker.environment(),
                                                   device.device_class());
  };
  ASSAY_ASSIGN_OR_RETURN(dispatcher, Dispatcher::Create(options));
  dispatcher->SetObserver([this](const v1::Evaluation& evaluation) {
    metrics.CountTransition(evaluation);
    if (IsFinal(evaluation)) access->RemoveUnfinished(evaluation.creator(), evaluation.name());
    watches.Publish(evaluation);
  });
  return absl::OkStatus();
}

void AssayServer::Parts::MakeServices() {
  reads = std::make_unique<Executor>(kReaderCount, limits::kReadsQueuedMax);
  replies = std::make_unique<Executor>(1, limits::kWritesInFlightMax);
  ServiceContext context;
  context.clock = clock;
  context.store = store.get();
  context.dispatcher = dispatcher.get();
  context.reads = reads.get();
  context.replies = replies.get();
  context.writes = &writes;
  context.catalogue = &catalogue;
  context.candidates = &candidates;
  context.admission = &admission;
  context.watches = &watches;
  context.metrics = &metrics;
  context.access = access.get();
  services.push_back(MakeProblemService(context));
  services.push_back(MakeCandidateService(context));
  services.push_back(MakeEvaluationService(context));
  services.push_back(MakeLeaderboardService(context));
  services.push_back(MakeFleetService(context));
  services.push_back(MakeAccessService(context));
  services.push_back(NewDispatchService(dispatcher.get(), access.get()));
  metrics.SetSources({
      .dispatch = [this] { return dispatcher->Counters(); },
      .reads_queued = [this] { return reads->queued(); },
      .reads_rejected_total = [this] { return reads->rejected_total(); },
      .writes_in_flight = [this] { return writes.in_flight(); },
      .watchers = [this] { return watches.size(); },
      .problems = [this] { return catalogue.size(); },
      .access = [this] { return access->Counters(); },
  });
}

absl::StatusOr<int> AssayServer::Parts::Bind(
    const std::string& listen, const std::shared_ptr<grpc::ServerCredentials>& credentials) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(listen, credentials, &port);
  for (const auto& service : services) builder.RegisterService(service.get());
  builder.SetMaxReceiveMessageSize(static_cast<int>(limits::kMessageBytesMax));
  builder.SetMaxSendMessageSize(static_cast<int>(limits::kMessageBytesMax));
  grpc::ResourceQuota quota("assay");
  quota.Resize(kMessageMemoryBytes);
  builder.SetResourceQuota(quota);
  // Two servers on one port would share its calls at random.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // Dead peers of watches and long polls are noticed; clients may ping at the same pace.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 60'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
  server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    return ErrorWithReason(absl::StatusCode::kUnavailable, "PORT_IN_USE",
                           absl::StrCat("cannot listen on ", listen,
                                        ": the port is in use or the host is not this machine; "
                                        "choose another --listen"));
  }
  return port;
}

void AssayServer::Parts::SetServing(bool serving) {
  grpc::HealthCheckServiceInterface* health = server->GetHealthCheckService();
  if (health == nullptr) return;
  health->SetServingStatus(serving);
  for (const char* name : kServiceNames) health->SetServingStatus(name, serving);
}

absl::StatusOr<std::unique_ptr<AssayServer>> AssayServer::Start(const ServerOptions& options) {
  ASSAY_RETURN_IF_ERROR(CheckListen(options));
  ASSAY_ASSIGN_OR_RETURN(const auto credentials, MakeListenCredentials(options));
  auto parts = std::make_unique<Parts>(options.clock != nullptr ? options.clock : SystemClock());
  ASSAY_RETURN_IF_ERROR(parts->OpenStore(options));
  ASSAY_RETURN_IF_ERROR(parts->StartAccess(options));
  if (!options.problems_directory.empty()) {
    ASSAY_RETURN_IF_ERROR(parts->LoadProblems(options.problems_directory));
  }
  ASSAY_RETURN_IF_ERROR(parts->StartDispatcher());
  parts->MakeServices();
  int metrics_port = 0;
  if (!options.metrics_listen.empty()) {
    ASSAY_ASSIGN_OR_RETURN(metrics_port, parts->metrics.Expose(options.metrics_listen));
    Log(LogLevel::kInfo, "metrics",
        {{"url",
          absl::StrCat("http://", HostOf(options.metrics_listen), ":", metrics_port, "/metrics")}});
  }
  ASSAY_ASSIGN_OR_RETURN(const int port, parts->Bind(options.listen, credentials));
  parts->SetServing(true);
  parts->stream_guard = std::make_unique<StreamGuard>(parts->access.get(), &parts->watches);
  if (!options.publish_path.empty()) {
    parts->publisher = std::make_unique<Publisher>(parts->store.get(), options.publish_path,
                                                   absl::Seconds(options.publish_interval_seconds));
  }
  std::unique_ptr<AssayServer> server(new AssayServer(std::move(parts)));
  server->address_ = absl::StrCat(HostOf(options.listen), ":", port);
  server->metrics_port_ = metrics_port;
  return server;
}

AssayServer::AssayServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

AssayServer::~AssayServer() { Shutdown(); }

void AssayServer::Shutdown() {
  if (parts_ == nullptr) return;
  parts_->metrics.StopExposing();
  parts_->publisher.reset();
  parts_->stream_guard.reset();
  parts_->SetServing(false);
  parts_->watches.Shutdown();
  parts_->server->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
  parts_->server->Wait();
  parts_->reads->Shutdown();
  parts_->store->Shutdown();
  parts_->replies->Shutdown();
  parts_.reset();
}

}  // namespace assay
