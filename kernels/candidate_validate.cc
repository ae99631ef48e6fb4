#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "assay/v1/candidate.pb.h"
#include "assay/v1/problem.pb.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/strings.h"
#include "kernels/candidate.h"
#include "kernels/candidate_files.h"
#include "kernels/contract.h"
#include "kernels/expression/expression.h"
#include "kernels/problem.h"
#include "kernels/text.h"

namespace assay {
namespace {

absl::Status Malformed(std::string_view message) {
  return ErrorWithReason(absl::StatusCode::kInvalidArgument, "CANDIDATE_MALFORMED", message);
}

// Gives an error from a check that knows no reasons the candidate's reason.
absl::Status AsMalformed(const absl::Status& status, std::string_view place) {
  if (status.ok()) return status;
  return Malformed(absl::StrCat(Av(place), ": ", status.message()));
}

absl::Status CheckCount(int count, size_t min, size_t max, std::string_view field) {
  const auto n = static_cast<size_t>(count);
  if (n >= min && n <= max) return absl::OkStatus();
  return Malformed(
      absl::StrCat(Av(field), ": ", n, " entries; ", min, " to ", max, " are allowed"));
}

absl::Status CheckText(const std::string& text, std::string_view field) {
  if (text.size() <= limits::kTextBytesMax && FindBadUtf8(text) == std::string::npos) {
    return absl::OkStatus();
  }
  return Malformed(absl::StrCat(Av(field), ": must be UTF-8 of at most ", limits::kTextBytesMax,
                                " bytes without NUL, but has ", text.size()));
}

absl::Status CheckParses(const std::string& expression, std::string_view place) {
  return AsMalformed(Expression::Parse(expression).status(), place);
}

absl::Status CheckHead(const v1::CandidateSpec& spec) {
  if (spec.problem().empty()) {
    return ErrorWithReason(absl::StatusCode::kInvalidArgument, "PROBLEM_MISSING",
                           "the candidate names no problem; set `problem`, or give --problem");
  }
  ASSAY_RETURN_IF_ERROR(AsMalformed(CheckProblemId(ProblemId(spec.problem())), "problem"));
  if (!v1::Language_IsValid(spec.language()) || spec.language() == v1::LANGUAGE_UNSPECIFIED) {
    return Malformed("language: set CPP, CUDA_CPP or PTX");
  }
  if (!spec.label().empty() && !IsPlainName(spec.label())) {
    return Malformed(absl::StrCat("label: ", Quoted(spec.label()),
                                  " must be of [A-Za-z0-9_.-] and ", "at most ",
                                  limits::kNameBytesMax, " characters"));
  }
  if (!spec.contract().empty() && !IsContractName(spec.contract())) {
    return Malformed(absl::StrCat("contract: ", Quoted(spec.contract()),
                                  " must be of [a-z0-9_-] and at most ", limits::kNameBytesMax,
                                  " characters"));
  }
  ASSAY_RETURN_IF_ERROR(CheckText(spec.origin().author(), "origin.author"));
  ASSAY_RETURN_IF_ERROR(CheckText(spec.origin().model(), "origin.model"));
  return CheckText(spec.origin().strategy(), "origin.strategy");
}

absl::Status CheckParameters(const v1::CandidateSpec& spec) {
  ASSAY_RETURN_IF_ERROR(
      CheckCount(spec.parameters_size(), 0, limits::kParametersMax, "parameters"));
  ASSAY_RETURN_IF_ERROR(
      CheckCount(spec.constraints_size(), 0, limits::kDeclarationsMax, "constraints"));
  std::set<std::string> names;
  for (const v1::TuningParameter& parameter : spec.parameters()) {
    ASSAY_RETURN_IF_ERROR(
        AsMalformed(CheckIdentifier(parameter.name(), "parameter"), "parameters"));
    const std::string place = absl::StrCat("parameter '", parameter.name(), "'");
    if (!names.insert(parameter.name()).second) return Malformed(place + " is declared twice");
    ASSAY_RETURN_IF_ERROR(
        CheckCount(parameter.values_size(), 1, limits::kParameterValuesMax, place + " values"));
    const std::set<int64_t> distinct(parameter.values().begin(), parameter.values().end());
    if (distinct.size() != static_cast<size_t>(parameter.values_size())) {
      return Malformed(place + ": a value is listed twice; list each once");
    }
  }
  for (const std::string& constraint : spec.constraints()) {
    ASSAY_RETURN_IF_ERROR(CheckParses(constraint, "constraints"));
    // Parsed twice, which costs less than it would to carry the result around.
    const auto parsed = Expression::Parse(constraint);
    for (const std::string& name : parsed->names()) {
      if (names.count(name) == 0) {
        return Malformed(
            absl::StrCat("constraint ", Quoted(constraint), " uses ", Quoted(name),
                         ", which is not a parameter; constraints are over parameters"));
      }
    }
  }
  return absl::OkStatus();
}

// Entry points of PTX may begin with '_' or '$'.
absl::Status CheckKernelName(const std::string& name, std::string_view place) {
  const bool characters = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$';
  });
  const bool digit_first = !name.empty() && name[0] >= '0' && name[0] <= '9';
  if (!name.empty() && name.size() <= limits::kPathBytesMax && characters && !digit_first) {
    return absl::OkStatus();
  }
  return Malformed(absl::StrCat(Av(place), ".kernel: ", Quoted(name),
                                " is not the name of an entry point of [A-Za-z0-9_$]"));
}

absl::Status CheckArgument(const std::string& argument, std::string_view place) {
  const absl::Status status = CheckParses(argument, place);
  double number = 0;
  if (status.ok() || !absl::SimpleAtod(argument, &number)) return status;
  return Malformed(absl::StrCat(status.message(),
                                "; float parameters cannot be passed to a kernel yet, so make it "
                                "a constant of the source"));
}

absl::Status CheckLaunch(const v1::Launch& launch, std::string_view place) {
  ASSAY_RETURN_IF_ERROR(CheckKernelName(launch.kernel(), place));
  ASSAY_RETURN_IF_ERROR(CheckCount(launch.grid_size(), 1, 3, absl::StrCat(Av(place), ".grid")));
  ASSAY_RETURN_IF_ERROR(CheckCount(launch.block_size(), 1, 3, absl::StrCat(Av(place), ".block")));
  ASSAY_RETURN_IF_ERROR(CheckCount(launch.args_size(), 0, limits::kLaunchArgumentsMax,
                                   absl::StrCat(Av(place), ".args")));
  for (const auto* expressions : {&launch.grid(), &launch.block()}) {
    for (const std::string& expression : *expressions) {
      ASSAY_RETURN_IF_ERROR(CheckParses(expression, place));
    }
  }
  for (int i = 0; i < launch.args_size(); ++i) {
    ASSAY_RETURN_IF_ERROR(CheckArgument(launch.args(i), absl::StrCat(Av(place), ".args[", i, "]")));
  }
  if (launch.shared_bytes().empty()) return absl::OkStatus();
  return CheckParses(launch.shared_bytes(), place);
}

absl::Status CheckPlan(const v1::CandidateSpec& spec) {
  const v1::LaunchPlan& plan = spec.plan();
  if (spec.language() == v1::CPP) {
    if (!spec.has_plan()) return absl::OkStatus();
    return Malformed("plan: a CPP candidate is called as a function and has no plan; remove it");
  }
  ASSAY_RETURN_IF_ERROR(CheckCount(plan.launches_size(), 1, limits::kLaunchesMax, "plan.launches"));
  ASSAY_RETURN_IF_ERROR(
      CheckCount(plan.workspaces_size(), 0, limits::kWorkspacesMax, "plan.workspaces"));
  std::set<std::string> names;
  for (const v1::TuningParameter& parameter : spec.parameters()) names.insert(parameter.name());
  for (const v1::Workspace& workspace : plan.workspaces()) {
    ASSAY_RETURN_IF_ERROR(
        AsMalformed(CheckIdentifier(workspace.name(), "workspace"), "plan.workspaces"));
    const std::string place = absl::StrCat("workspace '", workspace.name(), "'");
    if (!names.insert(workspace.name()).second) {
      return Malformed(place + ": another workspace or parameter has this name");
    }
    ASSAY_RETURN_IF_ERROR(CheckParses(workspace.bytes(), place));
  }
  for (int i = 0; i < plan.launches_size(); ++i) {
    ASSAY_RETURN_IF_ERROR(CheckLaunch(plan.launches(i), absl::StrCat("plan.launches[", i, "]")));
  }
  return absl::OkStatus();
}

absl::Status CheckOptions(const v1::CandidateSpec& spec) {
  ASSAY_RETURN_IF_ERROR(
      CheckCount(spec.compile_options_size(), 0, limits::kCompileOptionsMax, "compile_options"));
  for (const std::string& option : spec.compile_options()) {
    const bool printable =
        std::all_of(option.begin(), option.end(), [](char c) { return c > ' ' && c < 0x7f; });
    if (option.size() < 2 || option.size() > limits::kCompileOptionBytesMax || option[0] != '-' ||
        !printable) {
      return Malformed(
          absl::StrCat("compile_options: ", Quoted(option), " must begin with '-' and be 2 to ",
                       limits::kCompileOptionBytesMax, " printable characters without blanks"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckFiles(const v1::Candidate& candidate) {
  if (static_cast<size_t>(candidate.files_size()) > limits::kCandidateFilesMax) {
    return TooLarge(absl::StrCat(candidate.files_size(), " files; at most ",
                                 limits::kCandidateFilesMax, " are allowed"));
  }
  std::set<std::string> paths;
  size_t bytes = 0;
  for (const v1::SourceFile& file : candidate.files()) {
    ASSAY_RETURN_IF_ERROR(AsMalformed(CheckSourcePath(file.path()), "files"));
    if (!paths.insert(file.path()).second) {
      return Malformed(absl::StrCat("files: '", file.path(), "' occurs twice"));
    }
    ASSAY_RETURN_IF_ERROR(CheckSourceText(file.path(), file.content(), &bytes));
  }
  std::set<std::string> compiled;
  for (const std::string& source : candidate.spec().sources()) {
    if (paths.count(source) == 0 || !compiled.insert(source).second) {
      return Malformed(absl::StrCat("sources: ", Quoted(source),
                                    " is not among the candidate's files or occurs twice"));
    }
    if (!IsSourceOf(candidate.spec().language(), source)) {
      return Malformed(absl::StrCat("sources: ", Quoted(source), " is not a source of language ",
                                    v1::Language_Name(candidate.spec().language())));
    }
  }
  if (CandidateSources(candidate).empty()) {
    return Malformed(absl::StrCat(
        "there is no source of language ", v1::Language_Name(candidate.spec().language()),
        "; add a file that ends in ", Av(SourceExtensions(candidate.spec().language()))));
  }
  return absl::OkStatus();
}

// An expression over `names`; `place` begins the message.
absl::Status CheckNames(const std::string& expression, const std::set<std::string>& names,
                        std::string_view place) {
  const auto parsed = Expression::Parse(expression);
  if (!parsed.ok()) return AsMalformed(parsed.status(), place);
  for (const std::string& name : parsed->names()) {
    if (names.count(name) == 0) {
      return Malformed(absl::StrCat(Av(place), ": ", Quoted(expression), " uses ", Quoted(name),
                                    ", which is no axis or parameter"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckLaunchNames(const v1::Launch& launch, const std::set<std::string>& values,
                              const std::set<std::string>& buffers, std::string_view place) {
  for (const auto* expressions : {&launch.grid(), &launch.block()}) {
    for (const std::string& expression : *expressions) {
      ASSAY_RETURN_IF_ERROR(CheckNames(expression, values, place));
    }
  }
  if (!launch.shared_bytes().empty()) {
    ASSAY_RETURN_IF_ERROR(CheckNames(launch.shared_bytes(), values, place));
  }
  for (const std::string& argument : launch.args()) {
    if (buffers.count(argument) != 0) continue;
    ASSAY_RETURN_IF_ERROR(CheckNames(argument, values, absl::StrCat(Av(place), ".args")));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateCandidate(const v1::Candidate& candidate) {
  ASSAY_RETURN_IF_ERROR(CheckHead(candidate.spec()));
  ASSAY_RETURN_IF_ERROR(CheckParameters(candidate.spec()));
  ASSAY_RETURN_IF_ERROR(CheckPlan(candidate.spec()));
  ASSAY_RETURN_IF_ERROR(CheckOptions(candidate.spec()));
  return CheckFiles(candidate);
}

absl::Status CheckCandidateAgainstProblem(const v1::Candidate& candidate,
                                          const v1::Problem& problem) {
  const v1::CandidateSpec& spec = candidate.spec();
  const std::string id = ProblemId(problem.name());
  if (ProblemId(spec.problem()) != id) {
    return ErrorWithReason(absl::StatusCode::kInvalidArgument, "PROBLEM_MISMATCH",
                           absl::StrCat("the candidate is for problem ",
                                        Quoted(ProblemId(spec.problem())), ", not '", id, "'"));
  }
  ASSAY_RETURN_IF_ERROR(FindContract(problem, spec.contract()).status());
  std::set<std::string> taken = {id};
  std::set<std::string> values;
  std::set<std::string> buffers;
  for (const v1::Axis& axis : problem.axes()) values.insert(axis.name());
  for (const v1::Tensor& tensor : problem.tensors()) buffers.insert(tensor.name());
  taken.insert(values.begin(), values.end());
  taken.insert(buffers.begin(), buffers.end());
  for (const v1::TuningParameter& parameter : spec.parameters()) {
    values.insert(parameter.name());
    if (taken.count(parameter.name()) == 0) continue;
    return Malformed(absl::StrCat("parameter '", parameter.name(),
                                  "' takes a name of the problem '", id, "'; choose another"));
  }
  for (const v1::Workspace& workspace : spec.plan().workspaces()) {
    buffers.insert(workspace.name());
    const std::string place = absl::StrCat("workspace '", workspace.name(), "'");
    if (taken.count(workspace.name()) != 0) {
      return Malformed(place + " takes a name of the problem; choose another");
    }
    ASSAY_RETURN_IF_ERROR(CheckNames(workspace.bytes(), values, place));
  }
  for (int i = 0; i < spec.plan().launches_size(); ++i) {
    ASSAY_RETURN_IF_ERROR(CheckLaunchNames(spec.plan().launches(i), values, buffers,
                                           absl::StrCat("plan.launches[", i, "]")));
  }
  return absl::OkStatus();
}

}  // namespace assay
