#include "client/cli/submission.h"

#include <filesystem>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "kernels/candidate.h"
#include "kernels/problem.h"

namespace assay {
namespace {

absl::StatusOr<v1::Level> ParseLevel(const std::string& text) {
  if (text == "verify") return v1::VERIFY;
  if (text == "quick") return v1::QUICK;
  if (text == "ranked") return v1::RANKED;
  return absl::InvalidArgumentError(
      absl::StrCat("--level must be verify, quick or ranked, not '", text, "'"));
}

// "plain" of "some/where/plain.cc": what people call a candidate that has no label of its own.
std::string DefaultLabel(const std::string& path) {
  std::string stem = std::filesystem::path(path).lexically_normal().stem().string();
  if (stem.empty()) stem = std::filesystem::path(path).lexically_normal().parent_path().filename();
  for (char& c : stem) {
    const bool allowed =
        std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-';
    if (!allowed) c = '_';
  }
  return stem.substr(0, 64);
}

}  // namespace

absl::StatusOr<v1::CreateEvaluationRequest> MakeSubmission(const CommandContext& context,
                                                           const std::string& path) {
  const Arguments& arguments = context.arguments;
  v1::CreateEvaluationRequest request;
  v1::Candidate* candidate = request.mutable_candidate();
  ASSAY_RETURN_IF_ERROR(LoadCandidate(path, ProblemId(arguments.Get("problem")), candidate));
  if (candidate->spec().label().empty()) candidate->mutable_spec()->set_label(DefaultLabel(path));

  v1::Evaluation* evaluation = request.mutable_evaluation();
  evaluation->set_problem(absl::StrCat("problems/", candidate->spec().problem()));
  for (const std::string& workload : arguments.GetAll("workload")) {
    ASSAY_RETURN_IF_ERROR(ParseWorkloadSelector(workload, evaluation->add_workloads()));
  }
  // Device code is judged without a GPU unless one is asked for.
  const bool is_host = candidate->spec().language() == v1::CPP;
  evaluation->set_device_class(arguments.Get("device", is_host ? "cpu" : "emulated"));
  ASSAY_ASSIGN_OR_RETURN(const v1::Level level, ParseLevel(arguments.Get("level", "quick")));
  evaluation->set_level(level);
  for (const std::string& setting : arguments.GetAll("configuration")) {
    const size_t equals = setting.find('=');
    int64_t value = 0;
    if (equals == std::string::npos || !absl::SimpleAtoi(setting.substr(equals + 1), &value)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--configuration must be NAME=INTEGER, not '", setting, "'"));
    }
    (*evaluation->mutable_configuration())[setting.substr(0, equals)] = value;
  }
  ASSAY_ASSIGN_OR_RETURN(const int64_t priority, arguments.GetInt("priority", 0, -100, 100));
  evaluation->set_priority(static_cast<int>(priority));
  request.set_request_id(arguments.Get("request-id"));
  request.set_allow_stored_answer(arguments.Has("stored-answer"));
  return request;
}

}  // namespace assay
