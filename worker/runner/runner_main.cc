// assay-runner: starts guests ahead, takes one request from standard input, writes progress and one
// report to descriptor 3 and ends. Nothing is ever written to standard output.
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "assay/internal/v1/runner.pb.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "worker/guest/guest_session.h"
#include "worker/runner/framing.h"
#include "worker/runner/guest_pool.h"
#include "worker/runner/runner.h"
#include "worker/sandbox/slots.h"

namespace {

constexpr int kReportFd = 3;
constexpr int kGuestsAheadDefault = 2;
constexpr int kExitUsage = 2;
constexpr int kLowestPriority = 19;

std::map<std::string, std::string> ParseFlags(int argc, char** argv) {
  std::map<std::string, std::string> flags;
  for (int i = 1; i + 1 < argc; i += 2) flags[argv[i]] = argv[i + 1];
  return flags;
}

int IntFlag(const std::map<std::string, std::string>& flags, const std::string& name,
            int fallback) {
  const auto it = flags.find(name);
  int value = fallback;
  if (it != flags.end() && !absl::SimpleAtoi(it->second, &value)) return fallback;
  return value;
}

std::unique_ptr<assay::GuestPool> MakePool(const assay::GuestOptions& base, int guests_ahead) {
  assay::GuestPoolOptions options;
  options.start = [base](int index) {
    assay::GuestOptions guest = base;
    guest.slot = base.slot + index % assay::kSlotsPerRunner;
    return assay::GuestSession::Start(guest);
  };
  auto pool = std::make_unique<assay::GuestPool>(std::move(options));
  pool->Prepare(guests_ahead);
  return pool;
}

// The request holds the baseline that runs in the candidate's place, and no other.
std::vector<std::string> Libraries(const assay::internal::v1::RunnerRequest& request) {
  std::vector<std::string> libraries;
  for (const assay::v1::Baseline& baseline : request.problem().baselines()) {
    libraries.insert(libraries.end(), baseline.libraries().begin(), baseline.libraries().end());
  }
  return libraries;
}

absl::Status Tell(const assay::internal::v1::RunnerMessage& message) {
  return assay::WriteAll(kReportFd, assay::Frame(message.SerializeAsString()));
}

// A worker that is gone is noticed elsewhere.
void TellProgress(const assay::internal::v1::RunnerProgress& progress) {
  assay::internal::v1::RunnerMessage message;
  *message.mutable_progress() = progress;
  (void)Tell(message);
}

// Before there are threads and guests, which inherit it. What a machine refuses leaves the rest.
void GoToBackground() {
  const sched_param none = {};
  (void)sched_setscheduler(0, SCHED_BATCH, &none);
  (void)setpriority(PRIO_PROCESS, 0, kLowestPriority);
  // Where sessions are scheduled as groups, priorities count inside of them only. This process has
  // a session of its own.
  const assay::UniqueFd group(open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC));
  if (group.valid()) (void)assay::WriteAll(group.get(), absl::StrCat(kLowestPriority));
}

// Ends the process when the worker's end of standard input closes: the worker is gone, and nobody
// waits for the report. Sleeps in poll, so that it costs a measurement nothing.
void DieWithWorker() {
  pollfd input{STDIN_FILENO, 0, 0};
  while (true) {
    if (poll(&input, 1, -1) > 0 && (input.revents & (POLLHUP | POLLERR)) != 0) _exit(1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  // A guest that leaks descriptors or kills pipes must not end the runner by a signal.
  signal(SIGPIPE, SIG_IGN);
  // For a real CUDA driver: code that is loaded at its first launch would wait for the gate in
  // front of a timed call, and compiled code that is kept would outlive its evaluation.
  static char eager_loading[] = "CUDA_MODULE_LOADING=EAGER";
  static char no_cache[] = "CUDA_CACHE_DISABLE=1";
  putenv(eager_loading);
  putenv(no_cache);
  const std::map<std::string, std::string> flags = ParseFlags(argc, argv);
  if (flags.count("--guest") == 0) {
    assay::Log(assay::LogLevel::kError, "runner_usage",
               {{"message", "--guest PATH is missing; the worker starts this program"}});
    return kExitUsage;
  }
  const bool background = IntFlag(flags, "--background", 0) != 0;
  if (background) GoToBackground();
  assay::GuestOptions guest;
  if (background) guest.load_timeout *= assay::limits::kBackgroundPatience;
  guest.guest_binary = flags.at("--guest");
  guest.slot = IntFlag(flags, "--slot", 0) * assay::kSlotsPerRunner;
  guest.core = IntFlag(flags, "--guest-core", -1);
  guest.memory_bytes_max = assay::limits::kGuestMemoryBytes;
  guest.allow_unsandboxed = IntFlag(flags, "--allow-unsandboxed", 0) != 0;
  std::unique_ptr<assay::GuestPool> pool =
      MakePool(guest, IntFlag(flags, "--guests-ahead", kGuestsAheadDefault));

  absl::StatusOr<std::string> bytes =
      assay::ReadFrame(STDIN_FILENO, assay::limits::kReportBytesMax);
  if (absl::IsOutOfRange(bytes.status())) return 0;  // started ahead and never used
  assay::internal::v1::RunnerMessage message;
  assay::internal::v1::RunnerReport& report = *message.mutable_report();
  assay::internal::v1::RunnerRequest request;
  if (!bytes.ok() || !request.ParseFromString(*bytes)) {
    report.mutable_error()->set_code("INTERNAL");
    report.mutable_error()->set_reason("RUNNER_REQUEST_MALFORMED");
    report.mutable_error()->set_message(bytes.ok() ? "the request does not parse"
                                                   : std::string(bytes.status().message()));
  } else {
    std::thread watch(DieWithWorker);
    watch.detach();
    const std::vector<std::string> libraries = Libraries(request);
    if (!request.has_device_query() &&
        (request.guest_core() != guest.core || libraries != guest.libraries)) {
      pool.reset();  // the old guests give their slots back first
      guest.core = request.guest_core();
      guest.libraries = libraries;
      pool = MakePool(guest, kGuestsAheadDefault);
    }
    assay::ExecuteRunnerRequest(request, pool.get(), assay::SystemClock(), TellProgress,
                                /*health=*/nullptr, &report);
  }
  const absl::Status written = Tell(message);
  if (!written.ok()) {
    assay::Log(assay::LogLevel::kError, "report_not_written",
               {{"message", std::string(written.message())}});
  }
  // Guests that were started ahead die with this process; unwinding them would only cost time.
  _exit(written.ok() ? 0 : 1);
}
