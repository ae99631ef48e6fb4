// Load generator of scripts/bench: durable CreateEvaluation and BatchCreateEvaluations against a
// running server, beside a bare gRPC echo of the same payload. Both are driven by the same client
// in turn (A B A B ...), so that the ratio holds when the machine's speed drifts. Bounded in calls
// and time.
//
//   assay-bench-load --server HOST:PORT [--rounds 5] [--seconds 2] [--in_flight 256]     prints one
//   JSON object a line assay-bench-load --echo the echo server (started by the above)
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "assay/v1/evaluation.grpc.pb.h"
#include "base/random.h"
#include "echo.grpc.pb.h"

namespace assay {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr size_t kSourceBytes = 2048;
constexpr int kBatch = 100;

class EchoServer final : public bench::EchoService::CallbackService {
  grpc::ServerUnaryReactor* Echo(grpc::CallbackServerContext* context,
                                 const bench::Payload* request, bench::Payload* response) override {
    *response = *request;
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

int ServeEcho() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  EchoServer service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  std::cout << port << std::endl;
  server->Wait();
  return 0;
}

// A source of 2 KiB that differs for every call.
std::string UniqueSource(uint64_t number) {
  std::string source =
      absl::StrCat("// ", number, "\n",
                   "extern \"C\" void vector_add(const float* a, const float* b, "
                   "float* c, int64_t n) {\n  for (int64_t i = 0; i < n; ++i) c[i] "
                   "= a[i] + b[i];\n}\n//");
  source.resize(kSourceBytes, 'x');
  return source;
}

void FillRequest(uint64_t number, v1::CreateEvaluationRequest* request) {
  v1::Candidate* candidate = request->mutable_candidate();
  candidate->mutable_spec()->set_problem("vector_add");
  candidate->mutable_spec()->set_language(v1::CPP);
  v1::SourceFile* file = candidate->add_files();
  file->set_path("candidate.cc");
  file->set_content(UniqueSource(number));
  request->mutable_evaluation()->set_problem("problems/vector_add");
  request->mutable_evaluation()->set_device_class("cpu-bench-none");  // stays queued
  request->mutable_evaluation()->set_level(v1::VERIFY);
}

// Keeps `in_flight` calls going for `seconds`, then waits for the last ones.
class Load {
 public:
  using Issue = std::function<void(std::function<void(bool ok)> done)>;

  struct Result {
    double calls_per_second = 0;
    int64_t failures = 0;
  };

  static Result Run(const Issue& issue, int in_flight, double seconds) {
    Load load(issue);
    const auto start = SteadyClock::now();
    load.end_ = start + std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9));
    load.live_ = in_flight;
    for (int i = 0; i < in_flight; ++i) load.Next();
    {
      absl::MutexLock lock(&load.mutex_);
      load.mutex_.Await(absl::Condition(
          +[](std::atomic<int>* live) { return live->load() == 0; }, &load.live_));
    }
    const double wall = std::chrono::duration<double>(SteadyClock::now() - start).count();
    return {static_cast<double>(load.finished_.load()) / wall, load.failures_.load()};
  }

 private:
  explicit Load(const Issue& issue) : issue_(issue) {}

  void Next() {
    issue_([this](bool ok) {
      ++(ok ? finished_ : failures_);
      if (ok && SteadyClock::now() < end_) {
        Next();
        return;
      }
      absl::MutexLock lock(&mutex_);
      --live_;
    });
  }

  const Issue& issue_;
  SteadyClock::time_point end_;
  absl::Mutex mutex_;
  std::atomic<int> live_{0};
  std::atomic<int64_t> finished_{0};
  std::atomic<int64_t> failures_{0};
};

template <typename Request, typename Response>
struct Call {
  grpc::ClientContext context;
  Request request;
  Response response;
};

struct Options {
  std::string server;
  int rounds = 5;
  double seconds = 2;
  int in_flight = 256;
};

std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
  return grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

void PrintFigure(const std::string& figure, double value, const std::string& unit, double reach,
                 const std::string& detail) {
  std::string line = absl::StrFormat("{\"figure\": \"%s\", \"value\": %.4g, \"unit\": \"%s\"",
                                     figure, value, unit);
  if (reach > 0) {
    absl::StrAppendFormat(&line, ", \"reach\": %.4g, \"ok\": %s", reach,
                          value >= reach ? "true" : "false");
  }
  std::cout << line << ", \"detail\": \"" << detail << "\"}" << std::endl;
}

int RunLoad(const Options& options, const std::string& echo_address) {
  const auto echo = bench::EchoService::NewStub(Connect(echo_address));
  const auto evaluations = v1::EvaluationService::NewStub(Connect(options.server));
  std::atomic<uint64_t> counter{SecureRandom64()};

  const Load::Issue issue_echo = [&](std::function<void(bool)> done) {
    auto* call = new Call<bench::Payload, bench::Payload>;
    call->request.set_data(UniqueSource(counter++));
    echo->async()->Echo(&call->context, &call->request, &call->response,
                        [call, done](const grpc::Status& status) {
                          const bool ok = status.ok();
                          delete call;
                          done(ok);
                        });
  };
  const Load::Issue issue_create = [&](std::function<void(bool)> done) {
    auto* call = new Call<v1::CreateEvaluationRequest, v1::Evaluation>;
    FillRequest(counter++, &call->request);
    evaluations->async()->CreateEvaluation(&call->context, &call->request, &call->response,
                                           [call, done](const grpc::Status& status) {
                                             if (!status.ok())
                                               std::cerr << status.error_message() << "\n";
                                             const bool ok = status.ok();
                                             delete call;
                                             done(ok);
                                           });
  };
  const Load::Issue issue_batch = [&](std::function<void(bool)> done) {
    auto* call = new Call<v1::BatchCreateEvaluationsRequest, v1::BatchCreateEvaluationsResponse>;
    for (int i = 0; i < kBatch; ++i) FillRequest(counter++, call->request.add_requests());
    evaluations->async()->BatchCreateEvaluations(&call->context, &call->request, &call->response,
                                                 [call, done](const grpc::Status& status) {
                                                   if (!status.ok())
                                                     std::cerr << status.error_message() << "\n";
                                                   const bool ok = status.ok();
                                                   delete call;
                                                   done(ok);
                                                 });
  };

  Load::Run(issue_echo, options.in_flight, 0.3);  // connections and threads come up
  Load::Run(issue_create, options.in_flight, 0.3);
  std::vector<double> echo_rates, create_rates, ratios, batch_rates;
  int64_t failures = 0;
  for (int round = 0; round < options.rounds; ++round) {
    const Load::Result a = Load::Run(issue_echo, options.in_flight, options.seconds);
    const Load::Result b = Load::Run(issue_create, options.in_flight, options.seconds);
    failures += a.failures + b.failures;
    echo_rates.push_back(a.calls_per_second);
    create_rates.push_back(b.calls_per_second);
    ratios.push_back(b.calls_per_second / a.calls_per_second);
  }
  for (int round = 0; round < options.rounds; ++round) {
    const Load::Result result = Load::Run(issue_batch, 4, options.seconds);
    failures += result.failures;
    batch_rates.push_back(result.calls_per_second * kBatch);
  }
  PrintFigure(
      "durable_submit_over_echo", Median(ratios), "ratio", 0.45,
      absl::StrFormat("medians of %d rounds: %.0f durable creates/s, %.0f echoes/s, %d in "
                      "flight, 2 KiB source",
                      options.rounds, Median(create_rates), Median(echo_rates), options.in_flight));
  PrintFigure("batch_create_durable", Median(batch_rates), "evaluations/s", 8000,
              absl::StrFormat("batches of %d, 4 in flight, 2 KiB source each", kBatch));
  if (failures > 0) {
    std::cerr << failures << " calls failed\n";
    return 1;
  }
  return 0;
}

// Starts the echo server as a process of its own and reads its port.
int Main(const Options& options) {
  int ends[2];
  if (pipe(ends) != 0) return 2;
  const pid_t child = fork();
  if (child < 0) return 2;
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    execl("/proc/self/exe", "assay-bench-load", "--echo", nullptr);
    _exit(127);
  }
  close(ends[1]);
  char port[16] = {};
  const ssize_t got = read(ends[0], port, sizeof(port) - 1);
  int code = 2;
  int number = 0;
  if (got > 0 && absl::SimpleAtoi(port, &number)) {
    code = RunLoad(options, absl::StrCat("127.0.0.1:", number));
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return code;
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  assay::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--echo") return assay::ServeEcho();
    const std::string value = i + 1 < argc ? argv[++i] : "";
    bool ok = true;
    if (flag == "--server") {
      options.server = value;
    } else if (flag == "--rounds") {
      ok = absl::SimpleAtoi(value, &options.rounds);
    } else if (flag == "--seconds") {
      ok = absl::SimpleAtod(value, &options.seconds);
    } else if (flag == "--in_flight") {
      ok = absl::SimpleAtoi(value, &options.in_flight);
    } else {
      ok = false;
    }
    if (!ok) {
      std::cerr << "assay-bench-load: bad flag " << flag << "\n";
      return 2;
    }
  }
  if (options.server.empty()) {
    std::cerr << "assay-bench-load: --server HOST:PORT is missing\n";
    return 2;
  }
  return assay::Main(options);
}
