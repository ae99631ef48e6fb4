// assay problems list|show|create
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/text.h"
#include "client/cli/command.h"
#include "client/cli/exit_code.h"
#include "client/cli/output.h"
#include "client/cli/rpc.h"
#include "kernels/problem.h"

namespace assay {
namespace {

std::string TensorText(const v1::Tensor& tensor) {
  return absl::StrCat(tensor.name(), " ", v1::DataType_Name(tensor.dtype()), "[",
                      absl::StrJoin(tensor.shape(), ","), "]");
}

std::string ProblemReport(const v1::Problem& problem) {
  std::string out = absl::StrCat(
      problem.name(), " version ", problem.version(), ": ", Printable(problem.summary()), "\n",
      Printable(problem.arithmetic()), "\n\n", CandidatePrototype(problem), "\n");
  for (const v1::Tensor& tensor : problem.tensors()) {
    absl::StrAppend(&out, tensor.role() == v1::Tensor::INPUT ? "in   " : "out  ",
                    TensorText(tensor), "\n");
  }
  out += "\nworkloads:\n";
  for (const v1::Workload& workload : problem.workloads()) {
    std::vector<std::string> axes;
    for (const v1::Axis& axis : problem.axes()) {
      const auto it = workload.axes().find(axis.name());
      if (it != workload.axes().end()) axes.push_back(absl::StrCat(axis.name(), "=", it->second));
    }
    absl::StrAppend(&out, "  ", workload.name(), "  ", absl::StrJoin(axes, ","),
                    workload.verify_only() ? "  (verified, not measured)" : "", "\n");
  }
  return out;
}

absl::StatusOr<int> RunList(const CommandContext& context) {
  ASSAY_RETURN_IF_ERROR(ExpectWords(context, 0, "no words"));
  Connection connection(context.server);
  v1::ListProblemsRequest request;
  request.set_page_size(limits::kPageSizeMax);
  std::vector<std::vector<std::string>> rows = {{"problem", "version", "workloads", "summary"}};
  do {
    v1::ListProblemsResponse response;
    ASSAY_RETURN_IF_ERROR(connection.ToStatus(
        connection.problems().ListProblems(Connection::Context().get(), request, &response)));
    for (const v1::Problem& problem : response.problems()) {
      if (context.json) std::cout << ToJson(problem) << "\n";
      rows.push_back({ProblemId(problem.name()), absl::StrCat(problem.version()),
                      absl::StrCat(problem.workloads_size()), Printable(problem.summary())});
    }
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  if (!context.json) std::cout << FormatTable(rows, {1, 2});
  return kExitPassed;
}

absl::StatusOr<int> RunShow(const CommandContext& context) {
  ASSAY_RETURN_IF_ERROR(ExpectWords(context, 1, "one problem"));
  Connection connection(context.server);
  v1::GetProblemRequest request;
  request.set_name(absl::StrCat("problems/", ProblemId(context.arguments.positional()[0])));
  v1::Problem problem;
  ASSAY_RETURN_IF_ERROR(connection.ToStatus(
      connection.problems().GetProblem(Connection::Context().get(), request, &problem)));
  std::cout << (context.json ? ToJson(problem) + "\n" : ProblemReport(problem));
  return kExitPassed;
}

absl::StatusOr<int> RunCreate(const CommandContext& context) {
  ASSAY_RETURN_IF_ERROR(ExpectWords(context, 1, "one problem folder"));
  v1::CreateProblemRequest request;
  ASSAY_RETURN_IF_ERROR(
      LoadProblemDirectory(context.arguments.positional()[0], request.mutable_problem()));
  request.set_validate_only(context.arguments.Has("validate-only"));
  Connection connection(context.server);
  v1::Problem problem;
  ASSAY_RETURN_IF_ERROR(connection.ToStatus(
      connection.problems().CreateProblem(Connection::Context().get(), request, &problem)));
  if (context.json) {
    std::cout << ToJson(problem) << "\n";
  } else {
    std::cout << problem.name() << " version " << problem.version() << "\n";
  }
  return kExitPassed;
}

}  // namespace

std::vector<Command> ProblemCommands() {
  return {{.name = "problems list",
           .usage = "[--json]",
           .help = "List the problems",
           .flags = {},
           .run = RunList},
          {.name = "problems show",
           .usage = "NAME [--json]",
           .help = "Show a problem: its prototype, tensors and workloads",
           .flags = {},
           .run = RunShow},
          {.name = "problems create",
           .usage = "DIR [--validate-only] [--json]",
           .help = "Add a problem, or a new version of one, from its folder",
           .flags = {.valued = {}, .switches = {"validate-only"}},
           .run = RunCreate}};
}

}  // namespace assay
