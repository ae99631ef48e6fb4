#include "kernels/problem_validate.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "assay/v1/problem.pb.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/strings.h"
#include "kernels/problem.h"
#include "kernels/text.h"

namespace assay {
namespace validate {

absl::Status CheckExpression(std::string_view expression, const std::set<std::string>& names) {
  ASSAY_ASSIGN_OR_RETURN(const Expression parsed, Expression::Parse(expression));
  for (const std::string& name : parsed.names()) {
    if (names.count(name) == 0) {
      return absl::InvalidArgumentError(absl::StrCat("expression ", Quoted(expression), " uses ",
                                                     Quoted(name),
                                                     ", which is not the name of an axis"));
    }
  }
  return absl::OkStatus();
}

namespace {

absl::Status CheckCount(size_t count, size_t max, std::string_view field) {
  if (count <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(Av(field), ": ", count, " entries; at most ", max, " are allowed"));
}

absl::Status CheckCounts(const v1::Problem& problem) {
  const auto size = [](const auto& field) { return static_cast<size_t>(field.size()); };
  ASSAY_RETURN_IF_ERROR(CheckCount(size(problem.axes()), limits::kAxesMax, "axes"));
  ASSAY_RETURN_IF_ERROR(CheckCount(size(problem.tensors()), limits::kTensorsMax, "tensors"));
  ASSAY_RETURN_IF_ERROR(
      CheckCount(size(problem.constraints()), limits::kDeclarationsMax, "constraints"));
  ASSAY_RETURN_IF_ERROR(
      CheckCount(size(problem.transforms()), limits::kDeclarationsMax, "transforms"));
  ASSAY_RETURN_IF_ERROR(
      CheckCount(size(problem.input_cases()), limits::kDeclarationsMax, "input_cases"));
  ASSAY_RETURN_IF_ERROR(
      CheckCount(size(problem.contracts()), limits::kDeclarationsMax, "contracts"));
  ASSAY_RETURN_IF_ERROR(
      CheckCount(size(problem.baselines()), limits::kDeclarationsMax, "baselines"));
  ASSAY_RETURN_IF_ERROR(
      CheckCount(size(problem.workloads()), limits::kWorkloadsPerEvaluationMax, "workloads"));
  return CheckCount(size(problem.files()), limits::kCandidateFilesMax, "files");
}

absl::Status CheckHead(const v1::Problem& problem) {
  ASSAY_RETURN_IF_ERROR(Annotate(CheckProblemId(ProblemId(problem.name())), "name"));
  if (problem.version() < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("version is ", problem.version(), "; versions count up from 1"));
  }
  for (const std::string* text : {&problem.summary(), &problem.arithmetic()}) {
    if (text->size() <= limits::kTextBytesMax) continue;
    return absl::InvalidArgumentError(absl::StrCat("summary or arithmetic has ", text->size(),
                                                   " bytes; at most ", limits::kTextBytesMax,
                                                   " are allowed"));
  }
  return absl::OkStatus();
}

absl::Status CheckAxes(const v1::Problem& problem, std::set<std::string>* names) {
  if (problem.axes().empty()) {
    return absl::InvalidArgumentError("axes: a problem needs at least one axis");
  }
  for (const v1::Axis& axis : problem.axes()) {
    ASSAY_RETURN_IF_ERROR(CheckIdentifier(axis.name(), "axis"));
    if (!names->insert(axis.name()).second) {
      return absl::InvalidArgumentError(absl::StrCat("axis '", axis.name(), "' is declared twice"));
    }
    const int64_t low = axis.min() == 0 ? 1 : axis.min();
    const int64_t high = axis.max() == 0 ? (int64_t{1} << 31) - 1 : axis.max();
    if (low < 1 || high < low) {
      return absl::InvalidArgumentError(absl::StrCat("axis '", axis.name(), "' accepts [", low,
                                                     ", ", high, "]; it needs 1 <= min <= max"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckFiles(const v1::Problem& problem, std::set<std::string>* paths) {
  size_t bytes = 0;
  for (const v1::SourceFile& file : problem.files()) {
    ASSAY_RETURN_IF_ERROR(Annotate(CheckSourcePath(file.path()), "files"));
    if (!paths->insert(file.path()).second) {
      return absl::InvalidArgumentError(absl::StrCat("files: '", file.path(), "' occurs twice"));
    }
    bytes += file.content().size();
    if (file.content().size() > limits::kSourceBytesMax || bytes > limits::kProblemBytesMax) {
      return absl::InvalidArgumentError(
          absl::StrCat("files: '", file.path(), "' is too large; at most ", limits::kSourceBytesMax,
                       " bytes a file and ", limits::kProblemBytesMax, " in all are allowed"));
    }
    const size_t bad = FindBadUtf8(file.content());
    if (bad != std::string_view::npos) {
      return absl::InvalidArgumentError(absl::StrCat(file.path(), ":", LineOf(file.content(), bad),
                                                     ": the text is not UTF-8 without NUL"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckCppSource(const std::string& path, const std::set<std::string>& paths,
                            std::string_view field) {
  const std::string_view extension = FileExtension(path);
  if (extension != ".cc" && extension != ".cpp" && extension != ".cxx") {
    return absl::InvalidArgumentError(absl::StrCat(Av(field), ": ", Quoted(path),
                                                   " is not the path of a .cc, .cpp or .cxx file"));
  }
  if (paths.count(path) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(Av(field), ": ", Quoted(path), " is not among the problem's files"));
  }
  return absl::OkStatus();
}

absl::Status CheckBaselines(const v1::Problem& problem, const std::set<std::string>& paths) {
  std::set<std::string> names;
  for (const v1::Baseline& baseline : problem.baselines()) {
    if (!IsPlainName(baseline.name()) || !names.insert(baseline.name()).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "baselines: name ", Quoted(baseline.name()),
          " must be unique and of [A-Za-z0-9_.-], at most ", limits::kNameBytesMax, " characters"));
    }
    ASSAY_RETURN_IF_ERROR(
        CheckCppSource(baseline.source(), paths, absl::StrCat("baseline '", baseline.name(), "'")));
    for (const std::string& library : baseline.libraries()) {
      if (!IsPlainName(library) || baseline.libraries_size() > 8) {
        return absl::InvalidArgumentError(absl::StrCat(
            "baseline '", baseline.name(),
            "': libraries are at most 8 names of [A-Za-z0-9_.-], but one is ", Quoted(library)));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckWork(const v1::Problem& problem, const std::set<std::string>& axes) {
  const v1::WorkModel& work = problem.work();
  if (!v1::WorkModel::Unit_IsValid(work.unit()) || work.unit() == v1::WorkModel::UNIT_UNSPECIFIED) {
    return absl::InvalidArgumentError(
        "work.unit: set FLOP_F32, FLOP_F64, FLOP_F16, FLOP_BF16, OP_INT8, or NONE when only memory "
        "traffic counts");
  }
  if (work.operations().empty() && work.unit() != v1::WorkModel::NONE) {
    return absl::InvalidArgumentError("work.operations: give an expression, or set unit: NONE");
  }
  for (const std::string* expression :
       {&work.operations(), &work.bytes_read(), &work.bytes_written()}) {
    if (expression->empty()) continue;
    ASSAY_RETURN_IF_ERROR(Annotate(CheckExpression(*expression, axes), "work"));
  }
  return absl::OkStatus();
}

absl::Status CheckWorkloads(const v1::Problem& problem) {
  std::set<std::string> names;
  bool measured = false;
  for (const v1::Workload& workload : problem.workloads()) {
    if (!IsPlainName(workload.name()) || !names.insert(workload.name()).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "workloads: name ", Quoted(workload.name()),
          " must be unique and of [A-Za-z0-9_.-], at most ", limits::kNameBytesMax, " characters"));
    }
    measured = measured || !workload.verify_only();
    ASSAY_ASSIGN_OR_RETURN(const ResolvedWorkload resolved, ResolveWorkload(problem, workload));
    const std::string place = absl::StrCat("workload '", workload.name(), "'");
    ASSAY_RETURN_IF_ERROR(Annotate(ComputeWorkCost(problem, resolved).status(), place));
    ASSAY_RETURN_IF_ERROR(Annotate(validate::CheckTransformSizes(problem, resolved), place));
  }
  if (!measured) {
    return absl::InvalidArgumentError(
        "workloads: at least one workload must be measured; add one without verify_only");
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace validate

absl::Status ValidateProblem(const v1::Problem& problem) {
  using namespace validate;  // the parts above
  std::set<std::string> axes;
  std::set<std::string> paths;
  ASSAY_RETURN_IF_ERROR(CheckCounts(problem));
  ASSAY_RETURN_IF_ERROR(CheckHead(problem));
  ASSAY_RETURN_IF_ERROR(CheckAxes(problem, &axes));
  ASSAY_RETURN_IF_ERROR(CheckTensors(problem, axes));
  ASSAY_RETURN_IF_ERROR(CheckInputCases(problem, axes));
  ASSAY_RETURN_IF_ERROR(CheckContracts(problem));
  ASSAY_RETURN_IF_ERROR(CheckTransforms(problem));
  for (const std::string& constraint : problem.constraints()) {
    ASSAY_RETURN_IF_ERROR(Annotate(CheckExpression(constraint, axes), "constraints"));
  }
  ASSAY_RETURN_IF_ERROR(CheckWork(problem, axes));
  ASSAY_RETURN_IF_ERROR(CheckFiles(problem, &paths));
  ASSAY_RETURN_IF_ERROR(CheckCppSource(problem.reference(), paths, "reference"));
  ASSAY_RETURN_IF_ERROR(CheckBaselines(problem, paths));
  return CheckWorkloads(problem);
}

}  // namespace assay
