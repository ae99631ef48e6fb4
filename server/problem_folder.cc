#include "server/problem_folder.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "base/status.h"
#include "kernels/problem.h"
#include "store/records.h"

namespace assay {
namespace {

// Blocks until `write` was answered.
template <typename Write>
absl::StatusOr<v1::Problem> Await(const Write& write) {
  absl::Notification done;
  absl::StatusOr<v1::Problem> result = absl::UnknownError("not called");
  write([&](absl::StatusOr<v1::Problem> stored) {
    result = std::move(stored);
    done.Notify();
  });
  done.WaitForNotification();
  return result;
}

// Records the audit beside the problem unless the stored version has one already: a later audit by
// the operator stands.
absl::Status TakeAudit(const std::string& path, const v1::Problem& problem, Store* store,
                       Catalogue* catalogue) {
  v1::ProblemAudit audit;
  const absl::Status loaded = LoadProblemAudit(path, &audit);
  if (absl::IsNotFound(loaded)) return absl::OkStatus();
  ASSAY_RETURN_IF_ERROR(loaded);
  const std::shared_ptr<const v1::Problem> known = catalogue->Find(problem.name());
  if (known == nullptr || known->digest() != problem.digest() || known->has_audit()) {
    return absl::OkStatus();
  }
  // Admission has just set it.
  const absl::Time now = absl::FromUnixNanos(ToUnixNanos(problem.create_time()));
  ASSAY_ASSIGN_OR_RETURN(const v1::Problem stored, Await([&](StoreDone<v1::Problem> done) {
                           store->RecordProblemAudit(audit, now, std::move(done));
                         }));
  catalogue->Put(stored);
  return absl::OkStatus();
}

absl::Status TakeFolder(const std::string& path, const Admission& admission, Store* store,
                        Catalogue* catalogue, ProblemFolderReport* report) {
  v1::Problem problem;
  ASSAY_RETURN_IF_ERROR(LoadProblemDirectory(path, &problem));
  ASSAY_RETURN_IF_ERROR(admission.AdmitProblem(&problem));
  const std::shared_ptr<const v1::Problem> known = catalogue->Find(problem.name());
  if (known != nullptr &&
      ((known->digest() == problem.digest() && known->summary() == problem.summary()) ||
       known->version() > problem.version())) {
    ++report->unchanged_count;
    return TakeAudit(path, problem, store, catalogue);
  }
  if (known != nullptr && known->version() == problem.version()) {
    return ErrorWithReason(
        absl::StatusCode::kAlreadyExists, "PROBLEM_VERSION_EXISTS",
        absl::StrCat(problem.name(), " version ", problem.version(),
                     " is stored with other content; raise its version, or undo the change"));
  }
  ASSAY_ASSIGN_OR_RETURN(const v1::Problem stored, Await([&](StoreDone<v1::Problem> done) {
                           store->CreateProblem(problem, std::move(done));
                         }));
  catalogue->Put(stored);
  ++report->created_count;
  return TakeAudit(path, problem, store, catalogue);
}

}  // namespace

absl::StatusOr<ProblemFolderReport> LoadProblemFolder(const std::string& directory,
                                                      const Admission& admission, Store* store,
                                                      Catalogue* catalogue) {
  std::error_code error;
  std::vector<std::string> paths;
  for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code ignored;
    if (std::filesystem::exists(it->path() / "problem.textproto", ignored)) {
      paths.push_back(it->path().string());
    }
  }
  if (error) {
    return ErrorWithReason(absl::StatusCode::kNotFound, "PATH_NOT_FOUND",
                           absl::StrCat("problem folder '", directory, "': ", error.message(),
                                        "; pass an existing one with --problems"));
  }
  std::sort(paths.begin(), paths.end());
  ProblemFolderReport report;
  for (const std::string& path : paths) {
    const absl::Status taken = TakeFolder(path, admission, store, catalogue, &report);
    if (!taken.ok()) report.errors.push_back(absl::StrCat(path, ": ", taken.message()));
  }
  return report;
}

}  // namespace assay
