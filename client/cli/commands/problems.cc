// assay problems list|show|create|audit
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/text.h"
#include "client/audit/report.h"
#include "client/cli/audit_run.h"
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

std::string StateText(const v1::ProblemAuditSummary& audit) {
  if (audit.state() == v1::ProblemAuditSummary::ADMITTED) return "admitted";
  return audit.state() == v1::ProblemAuditSummary::REFUSED ? "refused" : "none";
}

std::string AuditText(const v1::ProblemAuditSummary& audit) {
  switch (audit.state()) {
    case v1::ProblemAuditSummary::ADMITTED:
      return absl::StrCat("admitted, ", audit.mutant_rejected_count(), " of ", audit.mutant_count(),
                          " mutants rejected");
    case v1::ProblemAuditSummary::REFUSED:
      return absl::StrCat("refused, results do not rank: ",
                          absl::StrJoin(audit.failed_steps(), ", "));
    default:
      return "none yet, results do not rank: assay problems audit";
  }
}

std::string ProblemReport(const v1::Problem& problem) {
  std::string out = absl::StrCat(
      problem.name(), " version ", problem.version(), ": ", Printable(problem.summary()), "\n",
      Printable(problem.arithmetic()), "\naudit: ", Printable(AuditText(problem.audit())), "\n\n",
      CandidatePrototype(problem), "\n");
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

// Of mutants, unless another is asked for: two audits of one content agree.
constexpr int64_t kAuditSeed = 1;

absl::Status Get(Connection& connection, const std::string& name, v1::Problem* problem) {
  v1::GetProblemRequest request;
  request.set_name(absl::StrCat("problems/", ProblemId(name)));
  return connection.ToStatus(
      connection.problems().GetProblem(Connection::Context().get(), request, problem));
}

absl::StatusOr<int> RunList(const CommandContext& context) {
  ASSAY_RETURN_IF_ERROR(ExpectWords(context, 0, "no words"));
  Connection connection(context.server);
  v1::ListProblemsRequest request;
  request.set_page_size(limits::kPageSizeMax);
  std::vector<std::vector<std::string>> rows = {
      {"problem", "version", "workloads", "audit", "summary"}};
  do {
    v1::ListProblemsResponse response;
    ASSAY_RETURN_IF_ERROR(connection.ToStatus(
        connection.problems().ListProblems(Connection::Context().get(), request, &response)));
    for (const v1::Problem& problem : response.problems()) {
      if (context.json) std::cout << ToJson(problem) << "\n";
      rows.push_back({ProblemId(problem.name()), absl::StrCat(problem.version()),
                      absl::StrCat(problem.workloads_size()), StateText(problem.audit()),
                      Printable(problem.summary())});
    }
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  if (!context.json) std::cout << FormatTable(rows, {1, 2});
  return kExitPassed;
}

absl::StatusOr<int> RunShow(const CommandContext& context) {
  ASSAY_RETURN_IF_ERROR(ExpectWords(context, 1, "one problem"));
  Connection connection(context.server);
  v1::Problem problem;
  ASSAY_RETURN_IF_ERROR(Get(connection, context.arguments.positional()[0], &problem));
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
  const bool audits = !request.validate_only() && !context.arguments.Has("no-audit") &&
                      problem.audit().state() == v1::ProblemAuditSummary::STATE_UNSPECIFIED;
  if (!context.json) std::cout << problem.name() << " version " << problem.version() << std::endl;
  int exit_code = kExitPassed;
  if (audits) {
    ASSAY_ASSIGN_OR_RETURN(
        const v1::ProblemAudit audit,
        RunProblemAudit(&connection, context.arguments.positional()[0], kAuditSeed));
    exit_code = ExitCodeOf(audit);
    if (!context.json) std::cout << AuditTable(audit);
    ASSAY_RETURN_IF_ERROR(Get(connection, problem.name(), &problem));
  }
  if (context.json) std::cout << ToJson(problem) << "\n";
  return exit_code;
}

absl::StatusOr<int> RunAudit(const CommandContext& context) {
  ASSAY_RETURN_IF_ERROR(ExpectWords(context, 1, "one problem, by name or folder"));
  ASSAY_ASSIGN_OR_RETURN(const int64_t seed,
                         context.arguments.GetInt("seed", kAuditSeed, 0, INT64_MAX));
  Connection connection(context.server);
  ASSAY_ASSIGN_OR_RETURN(
      const v1::ProblemAudit audit,
      RunProblemAudit(&connection, context.arguments.positional()[0], static_cast<uint64_t>(seed)));
  std::cout << (context.json ? ToJson(audit) + "\n" : AuditTable(audit));
  if (context.arguments.Has("report")) {
    ASSAY_RETURN_IF_ERROR(
        WriteFileAtomically(context.arguments.Get("report"), AuditMarkdown(audit)));
  }
  if (context.arguments.Has("textproto")) {
    ASSAY_RETURN_IF_ERROR(
        WriteFileAtomically(context.arguments.Get("textproto"), AuditTextProto(audit)));
  }
  return ExitCodeOf(audit);
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
           .usage = "DIR [--validate-only] [--no-audit] [--json]",
           .help = "Add a problem, or a new version of one, from its folder, and audit it",
           .flags = {.valued = {}, .switches = {"validate-only", "no-audit"}},
           .run = RunCreate},
          {.name = "problems audit",
           .usage = "NAME|DIR [--seed N] [--report FILE.md] [--textproto FILE] [--json]",
           .help = "Find out whether a problem tells right from wrong; its results rank if it does",
           .flags = {.valued = {"seed", "report", "textproto"}, .switches = {}},
           .run = RunAudit}};
}

}  // namespace assay
