#include "client/cli/audit_run.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/random.h"
#include "base/status.h"
#include "base/text.h"
#include "client/audit/audit.h"
#include "client/audit/report.h"
#include "client/cli/exit_code.h"
#include "client/cli/output.h"
#include "client/cli/progress.h"
#include "client/cli/report.h"
#include "kernels/problem.h"

namespace assay {
namespace {

// The service judges: batches under request ids of their own, then one wait after the other.
class ServiceJudge final : public AuditJudge {
 public:
  ServiceJudge(Connection* connection, Progress* progress)
      : connection_(connection), progress_(progress) {}

  absl::StatusOr<std::vector<v1::Evaluation>> Judge(
      const std::vector<v1::CreateEvaluationRequest>& requests) override {
    std::vector<v1::Evaluation> evaluations;
    for (size_t first = 0; first < requests.size(); first += kBatch) {
      const size_t last = std::min(first + kBatch, requests.size());
      ASSAY_RETURN_IF_ERROR(Submit(requests, first, last, &evaluations));
    }
    for (size_t i = 0; i < evaluations.size(); ++i) {
      progress_->Show(absl::StrCat("audit: ", i, " of ", evaluations.size(), " judged"));
      ASSAY_ASSIGN_OR_RETURN(evaluations[i],
                             connection_->WaitFor(evaluations[i].name(), absl::Hours(2),
                                                  [](const v1::Evaluation&) {}));
      if (evaluations[i].state() != v1::SUCCEEDED) {
        return absl::UnavailableError(
            absl::StrCat("the audit says nothing, since the service could "
                         "not judge: ",
                         EvaluationLine(evaluations[i])));
      }
    }
    return evaluations;
  }

 private:
  static constexpr size_t kBatch = 100;

  absl::Status Submit(const std::vector<v1::CreateEvaluationRequest>& requests, size_t first,
                      size_t last, std::vector<v1::Evaluation>* evaluations) {
    v1::BatchCreateEvaluationsRequest batch;
    for (size_t i = first; i < last; ++i) {
      *batch.add_requests() = requests[i];
      batch.mutable_requests()->rbegin()->set_request_id(SecureRandomHex(16));
    }
    v1::BatchCreateEvaluationsResponse response;
    const auto call = [&] {
      return connection_->ToStatus(connection_->evaluations().BatchCreateEvaluations(
          Connection::Context().get(), batch, &response));
    };
    absl::Status status = call();
    if (absl::IsUnavailable(status)) status = call();  // the request ids keep it from doubling
    ASSAY_RETURN_IF_ERROR(status);
    for (v1::Evaluation& one : *response.mutable_evaluations()) {
      evaluations->push_back(std::move(one));
    }
    return absl::OkStatus();
  }

  Connection* const connection_;
  Progress* const progress_;
};

struct Fleet {
  bool judges_cpp = false;
  std::string emulated_class;
  std::string harness_version;
};

absl::StatusOr<Fleet> FindFleet(Connection* connection) {
  Fleet fleet;
  v1::ListWorkersRequest request;
  do {
    v1::ListWorkersResponse response;
    ASSAY_RETURN_IF_ERROR(connection->ToStatus(
        connection->fleet().ListWorkers(Connection::Context().get(), request, &response)));
    for (const v1::Worker& worker : response.workers()) {
      if (worker.state() != v1::Worker::ACTIVE) continue;
      for (const v1::Device& device : worker.devices()) {
        if (absl::StartsWith(device.device_class(), "cpu")) {
          fleet.judges_cpp = true;
          fleet.harness_version = worker.environment().harness_version();
        }
        if (absl::StartsWith(device.device_class(), "emulated")) fleet.emulated_class = "emulated";
      }
    }
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  if (fleet.judges_cpp) return fleet;
  return absl::UnavailableError(
      "no active worker offers device class 'cpu', which an audit needs; start one, or create the "
      "problem with --no-audit and audit it later");
}

absl::StatusOr<v1::Problem> GetStored(Connection* connection, const std::string& name) {
  v1::GetProblemRequest request;
  request.set_name(name);
  v1::Problem problem;
  ASSAY_RETURN_IF_ERROR(connection->ToStatus(
      connection->problems().GetProblem(Connection::Context().get(), request, &problem)));
  return problem;
}

bool IsProblemFolder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path + "/problem.textproto", ignored);
}

absl::StatusOr<AuditMaterial> FindMaterial(Connection* connection, const std::string& target) {
  if (IsProblemFolder(target)) {
    ASSAY_ASSIGN_OR_RETURN(AuditMaterial material, LoadAuditMaterial(target));
    ASSAY_ASSIGN_OR_RETURN(const v1::Problem stored,
                           GetStored(connection, material.problem.name()));
    if (stored.digest() == material.problem.digest()) return material;
    return absl::FailedPreconditionError(
        absl::StrCat(material.problem.name(), " is stored in version ", stored.version(),
                     " with other content than ", target,
                     "; add the folder's with 'assay problems create ", target, "' first"));
  }
  ASSAY_ASSIGN_OR_RETURN(v1::Problem stored,
                         GetStored(connection, absl::StrCat("problems/", ProblemId(target))));
  const std::string shipped = absl::StrCat(ASSAY_PROBLEMS_DIR, "/", ProblemId(target));
  if (IsProblemFolder(shipped)) {
    ASSAY_ASSIGN_OR_RETURN(AuditMaterial material, LoadAuditMaterial(shipped));
    if (material.problem.digest() == stored.digest()) return material;
  }
  AuditMaterial material;
  material.problem.Swap(&stored);
  return material;
}

}  // namespace

absl::StatusOr<v1::ProblemAudit> RunProblemAudit(Connection* connection, const std::string& target,
                                                 uint64_t seed) {
  ASSAY_ASSIGN_OR_RETURN(const AuditMaterial material, FindMaterial(connection, target));
  ASSAY_ASSIGN_OR_RETURN(const Fleet fleet, FindFleet(connection));
  Progress progress;
  AuditOptions options;
  options.seed = seed;
  options.emulated_class = fleet.emulated_class;
  options.harness_version = fleet.harness_version;
  options.progress = [&](const std::string& text) { progress.Show(absl::StrCat("audit: ", text)); };
  ServiceJudge judge(connection, &progress);
  v1::RecordProblemAuditRequest request;
  ASSAY_ASSIGN_OR_RETURN(*request.mutable_audit(), AuditProblem(material, options, &judge));
  v1::Problem recorded;
  ASSAY_RETURN_IF_ERROR(connection->ToStatus(
      connection->problems().RecordProblemAudit(Connection::Context().get(), request, &recorded)));
  *request.mutable_audit()->mutable_time() = recorded.audit().time();
  return request.audit();
}

std::string AuditTable(const v1::ProblemAudit& audit) {
  std::vector<std::vector<std::string>> rows = {{"step", "result", "what was tried"}};
  for (const v1::AuditStep& step : audit.steps()) {
    const std::string result = AuditStepResult(step);
    const Color color = step.skipped() ? Color::kDim : step.passed() ? Color::kGreen : Color::kRed;
    rows.push_back({step.name(), Paint(result, color), Printable(step.summary())});
    for (const std::string& failure : step.failures()) {
      rows.push_back({"", "", absl::StrCat("- ", Printable(failure))});
    }
  }
  std::vector<std::vector<std::string>> families = {
      {"mutants", "made", "not compiled", "without witness", "with", "rejected"}};
  std::string survivors;
  for (const v1::MutantFamily& family : audit.families()) {
    families.push_back({family.name(), absl::StrCat(family.generated_count()),
                        absl::StrCat(family.uncompiled_count()),
                        absl::StrCat(family.discarded_count() - family.uncompiled_count()),
                        absl::StrCat(family.mutant_count()),
                        absl::StrCat(family.rejected_count())});
    for (const std::string& survivor : family.survivors()) {
      absl::StrAppend(&survivors, "survivor (", family.name(), "): ", Printable(survivor), "\n");
    }
  }
  return absl::StrCat(
      FormatTable(rows), "\n", FormatTable(families, {1, 2, 3, 4, 5}), survivors, "\n",
      audit.problem(), " version ", audit.problem_version(), ": ",
      audit.passed() ? Paint("admitted", Color::kGreen) : Paint("refused", Color::kRed), "\n");
}

int ExitCodeOf(const v1::ProblemAudit& audit) {
  return audit.passed() ? kExitPassed : kExitNotPassed;
}

}  // namespace assay
