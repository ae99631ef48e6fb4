// assay-server: wiring only. Flags, signals, exit codes.
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "base/strings.h"
#include "base/text.h"
#include "server/access/access_service.h"
#include "server/options.h"
#include "server/server.h"
#include "store/sqlite/sqlite_store.h"

namespace {

int Fail(const absl::Status& status) {
  const std::string reason = assay::GetReason(status);
  std::fprintf(stderr, "assay-server: %s%s\n",
               assay::PrintableLine(assay::Sv(status.message())).c_str(),
               reason.empty() ? "" : absl::StrCat(" [", reason, "]").c_str());
  return 2;
}

// Needs the data folder for itself. Prints the secret alone on standard output.
int CreateToken(const assay::ServerOptions& options) {
  assay::SqliteStoreOptions store_options;
  store_options.directory = options.data_directory;
  auto store = assay::OpenSqliteStore(store_options);
  if (!store.ok()) return Fail(store.status());
  const auto secret =
      assay::CreateAdminToken(options.create_admin_token, assay::SystemClock(), store->get());
  if (!secret.ok()) return Fail(secret.status());
  std::printf("%s\n", secret->c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const auto options = assay::ParseServerOptions(std::vector<std::string>(argv + 1, argv + argc));
  if (!options.ok()) return Fail(options.status());
  if (options->help) {
    std::fputs(std::string(assay::ServerUsage()).c_str(), stdout);
    return 0;
  }
  if (!options->create_admin_token.empty()) return CreateToken(*options);
  // Debian's Abseil looks for lock cycles at every lock: 4 % of a busy server. Tests leave it on.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // Blocked before any thread starts, so that all inherit it and sigwait below takes the signal.
  sigset_t stop_signals;
  sigemptyset(&stop_signals);
  sigaddset(&stop_signals, SIGTERM);
  sigaddset(&stop_signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &stop_signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);

  auto server = assay::AssayServer::Start(*options);
  if (!server.ok()) return Fail(server.status());
  std::printf("listening %s\n", (*server)->address().c_str());
  if ((*server)->metrics_port() != 0) {
    const std::string host = options->metrics_listen.substr(0, options->metrics_listen.rfind(':'));
    std::printf("metrics %s:%d\n", host.c_str(), (*server)->metrics_port());
  }
  std::fflush(stdout);

  int signal_number = 0;
  sigwait(&stop_signals, &signal_number);
  assay::Log(assay::LogLevel::kInfo, "stopping", {{"signal", absl::StrCat(signal_number)}});
  // A second signal ends a shutdown that takes too long.
  pthread_sigmask(SIG_UNBLOCK, &stop_signals, nullptr);
  (*server)->Shutdown();
  assay::Log(assay::LogLevel::kInfo, "stopped");
  return 0;
}
