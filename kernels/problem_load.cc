// Problems as folders.
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "assay/v1/problem.pb.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/strings.h"
#include "kernels/problem.h"
#include "kernels/text.h"
#include "kernels/textproto.h"

namespace assay {
namespace {

absl::StatusOr<std::string> Read(const std::string& directory, const std::string& path) {
  const auto on_disk = ResolveInside(directory, path);
  if (absl::IsInvalidArgument(on_disk.status())) {
    return ErrorWithReason(absl::StatusCode::kInvalidArgument, "PROBLEM_MALFORMED",
                           Sv(on_disk.status().message()));
  }
  if (!on_disk.ok()) return on_disk.status();
  return ReadFile(*on_disk, limits::kSourceBytesMax);
}

absl::Status AddFile(const std::string& directory, const std::string& path, v1::Problem* problem) {
  ASSAY_RETURN_IF_ERROR(CheckSourcePath(path));
  ASSAY_ASSIGN_OR_RETURN(std::string content, Read(directory, path));
  const size_t bad = FindBadUtf8(content);
  if (bad != std::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat(directory, "/", path, ":", LineOf(content, bad),
                                                   ": the text is not UTF-8 without NUL"));
  }
  v1::SourceFile* file = problem->add_files();
  file->set_path(path);
  file->set_content(std::move(content));
  return absl::OkStatus();
}

}  // namespace

absl::Status LoadProblemDirectory(const std::string& directory, v1::Problem* problem) {
  problem->Clear();
  const std::string path = absl::StrCat(directory, "/problem.textproto");
  ASSAY_ASSIGN_OR_RETURN(const std::string text, Read(directory, "problem.textproto"));
  ASSAY_RETURN_IF_ERROR(ParseTextProto(text, path, TextPosition(), "PROBLEM_MALFORMED", problem));
  if (!problem->files().empty() || !problem->digest().empty() || problem->has_create_time() ||
      problem->has_audit()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": files, digest, create_time and audit are set by the loader; remove them"));
  }
  problem->set_name(absl::StrCat("problems/", ProblemId(problem->name())));
  std::set<std::string> paths;
  if (!problem->reference().empty()) paths.insert(problem->reference());
  for (const v1::Baseline& baseline : problem->baselines()) paths.insert(baseline.source());
  if (paths.size() > limits::kCandidateFilesMax) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": it names ", paths.size(),
                                                   " files; at most ", limits::kCandidateFilesMax,
                                                   " are allowed"));
  }
  for (const std::string& source : paths) {
    ASSAY_RETURN_IF_ERROR(Annotate(AddFile(directory, source, problem),
                                   absl::StrCat(path, " names ", Quoted(source))));
  }
  ASSAY_RETURN_IF_ERROR(Annotate(ValidateProblem(*problem), path));
  problem->set_digest(ProblemDigest(*problem));
  return absl::OkStatus();
}

absl::Status LoadProblemAudit(const std::string& directory, v1::ProblemAudit* audit) {
  audit->Clear();
  ASSAY_ASSIGN_OR_RETURN(const std::string text, Read(directory, "audit.textproto"));
  return ParseTextProto(text, absl::StrCat(directory, "/audit.textproto"), TextPosition(),
                        "PROBLEM_MALFORMED", audit);
}

}  // namespace assay
