// What is audited, from a problem's folder.
#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/status.h"
#include "client/audit/audit.h"
#include "kernels/candidate.h"
#include "kernels/problem.h"

namespace assay {
namespace {

absl::Status LoadAll(const std::string& directory, const std::string& folder,
                     const v1::Problem& problem, std::vector<AuditCandidate>* candidates) {
  std::error_code error;
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator it(directory + "/" + folder, error), end;
       !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  // The plain one first.
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    const bool plain = a == "plain.cc";
    const bool other = b == "plain.cc";
    return plain != other ? plain : a < b;
  });
  for (const std::string& name : names) {
    AuditCandidate candidate;
    candidate.name = folder + "/" + name;
    ASSAY_RETURN_IF_ERROR(LoadCandidate(directory + "/" + candidate.name, ProblemId(problem.name()),
                                        &candidate.candidate));
    candidates->push_back(std::move(candidate));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<AuditMaterial> LoadAuditMaterial(const std::string& directory) {
  AuditMaterial material;
  ASSAY_RETURN_IF_ERROR(LoadProblemDirectory(directory, &material.problem));
  ASSAY_RETURN_IF_ERROR(LoadAll(directory, "candidates", material.problem, &material.honest));
  ASSAY_RETURN_IF_ERROR(LoadAll(directory, "candidates_wrong", material.problem, &material.wrong));
  return material;
}

}  // namespace assay
