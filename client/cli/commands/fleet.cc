// assay fleet list|drain|undrain
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/limits.h"
#include "base/status.h"
#include "client/cli/command.h"
#include "client/cli/exit_code.h"
#include "client/cli/output.h"
#include "client/cli/rpc.h"

namespace assay {
namespace {

absl::StatusOr<int> RunList(const CommandContext& context) {
  ASSAY_RETURN_IF_ERROR(ExpectWords(context, 0, "no words"));
  v1::ListWorkersRequest request;
  request.set_page_size(limits::kPageSizeMax);
  Connection connection(context.server);
  std::vector<std::vector<std::string>> rows = {
      {"worker", "state", "device classes", "running", "done", "failures", "missing walls"}};
  do {
    v1::ListWorkersResponse response;
    ASSAY_RETURN_IF_ERROR(connection.ToStatus(
        connection.fleet().ListWorkers(Connection::Context().get(), request, &response)));
    for (const v1::Worker& worker : response.workers()) {
      if (context.json) std::cout << ToJson(worker) << "\n";
      std::vector<std::string> classes;
      for (const v1::Device& device : worker.devices()) classes.push_back(device.device_class());
      rows.push_back({worker.name(), v1::Worker::State_Name(worker.state()),
                      absl::StrJoin(classes, ","), absl::StrCat(worker.active_lease_count()),
                      absl::StrCat(worker.completed_count()),
                      absl::StrCat(worker.infrastructure_failure_count()),
                      absl::StrJoin(worker.environment().missing_walls(), ",")});
    }
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  if (!context.json) std::cout << FormatTable(rows, {3, 4, 5});
  return kExitPassed;
}

absl::StatusOr<int> SetDraining(const CommandContext& context, bool draining) {
  ASSAY_RETURN_IF_ERROR(ExpectWords(context, 1, "one worker"));
  const std::string& word = context.arguments.positional()[0];
  const std::string name = word.find('/') == std::string::npos ? "workers/" + word : word;
  Connection connection(context.server);
  v1::Worker worker;
  grpc::Status status;
  if (draining) {
    v1::DrainWorkerRequest request;
    request.set_name(name);
    status = connection.fleet().DrainWorker(Connection::Context().get(), request, &worker);
  } else {
    v1::UndrainWorkerRequest request;
    request.set_name(name);
    status = connection.fleet().UndrainWorker(Connection::Context().get(), request, &worker);
  }
  ASSAY_RETURN_IF_ERROR(connection.ToStatus(status));
  std::cout << (context.json
                    ? ToJson(worker)
                    : absl::StrCat(worker.name(), " ", v1::Worker::State_Name(worker.state())))
            << "\n";
  return kExitPassed;
}

absl::StatusOr<int> RunDrain(const CommandContext& context) { return SetDraining(context, true); }
absl::StatusOr<int> RunUndrain(const CommandContext& context) {
  return SetDraining(context, false);
}

}  // namespace

std::vector<Command> FleetCommands() {
  return {{.name = "fleet list",
           .usage = "[--json]",
           .help = "List the workers and their devices",
           .flags = {},
           .run = RunList},
          {.name = "fleet drain",
           .usage = "WORKER [--json]",
           .help = "Give a worker no new work",
           .flags = {},
           .run = RunDrain},
          {.name = "fleet undrain",
           .usage = "WORKER [--json]",
           .help = "Give a drained worker work again",
           .flags = {},
           .run = RunUndrain}};
}

}  // namespace assay
