#include "client/audit/generate.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "assay/v1/problem.pb.h"
#include "base/strings.h"
#include "client/audit/mutate.h"
#include "kernels/problem.h"

namespace assay {
namespace {

// Inputs, then outputs: the order of arguments.
std::vector<const v1::Tensor*> Arguments(const v1::Problem& problem) {
  std::vector<const v1::Tensor*> tensors;
  for (const v1::Tensor::Role role : {v1::Tensor::INPUT, v1::Tensor::OUTPUT}) {
    for (const v1::Tensor& tensor : problem.tensors()) {
      if (tensor.role() == role) tensors.push_back(&tensor);
    }
  }
  return tensors;
}

bool IsScaled(const v1::Problem& problem, const v1::Tensor& tensor) {
  return tensor.role() == v1::Tensor::OUTPUT &&
         ToleranceOf(problem, tensor).kind() == v1::TolerancePolicy::SCALED;
}

std::string Number(double value) { return absl::StrFormat("%.17g", value); }

std::string DrawText(const v1::Distribution& draw) {
  if (draw.has_normal()) {
    return absl::StrCat("audit::NORMAL, ", Number(draw.normal().mean()), ", ",
                        Number(draw.normal().stddev()));
  }
  if (draw.has_uniform()) {
    return absl::StrCat("audit::UNIFORM, ", Number(draw.uniform().low()), ", ",
                        Number(draw.uniform().high()));
  }
  if (draw.has_packed_codes2()) {
    return absl::StrCat("audit::CODES, 0, ", draw.packed_codes2().code_max());
  }
  if (!draw.has_uniform_int()) return "audit::NONE, 0, 0";
  const v1::Distribution::UniformInt& integers = draw.uniform_int();
  return absl::StrCat("audit::INTEGERS, ", integers.low(), ", double(",
                      integers.high_expression().empty() ? absl::StrCat(integers.high())
                                                         : integers.high_expression(),
                      ")");
}

// One element of the list that the entry hands on; expressions over axes are C++ as they are.
std::string TensorText(const v1::Problem& problem, const v1::Tensor& tensor, double honest) {
  std::vector<std::string> dims;
  for (const std::string& dim : tensor.shape()) dims.push_back(absl::StrCat("int64_t(", dim, ")"));
  if (dims.empty()) dims.push_back("int64_t(1)");
  const v1::TolerancePolicy& tolerance = ToleranceOf(problem, tensor);
  const bool output = tensor.role() == v1::Tensor::OUTPUT;
  return absl::StrCat("{const_cast<void*>(static_cast<const void*>(", tensor.name(), ")), ",
                      static_cast<int>(tensor.dtype()), ", ", output ? "true" : "false", ", ",
                      absl::StrJoin(dims, " * "), ", ", dims.back(), ", ",
                      IsScaled(problem, tensor) ? "true" : "false", ", ",
                      Number(tolerance.relative_l2_max()), ", ", Number(tolerance.element_max()),
                      ", ", tolerance.scale_per_row() ? "true" : "false", ", ", Number(honest),
                      ", ", DrawText(tensor.distribution()), "}");
}

// void Run_NAME(const Tensors& t, const int64_t* a) that calls the function within `name_space`.
std::string CallText(const v1::Problem& problem, std::string_view name_space, bool is_reference) {
  std::vector<std::string> parts;
  for (const v1::Tensor* tensor : Arguments(problem)) {
    const bool output = tensor->role() == v1::Tensor::OUTPUT;
    const std::string_view type = is_reference && IsScaled(problem, *tensor)
                                      ? "double"
                                      : DataTypeCpp(static_cast<DataType>(tensor->dtype()));
    parts.push_back(absl::StrCat("static_cast<", output ? "" : "const ", Av(type), "*>(t[",
                                 parts.size(), "].data)"));
  }
  for (int k = 0; k < problem.axes_size(); ++k) parts.push_back(absl::StrCat("a[", k, "]"));
  return absl::StrCat("static void Run_", Av(name_space),
                      "(const Tensors& t, const int64_t* a) {\n  ", Av(name_space),
                      "::", ProblemId(problem.name()), is_reference ? "_reference" : "", "(",
                      absl::StrJoin(parts, ", "), ");\n}\n");
}

// The whole program: enclosed sources, the prelude, `code` within namespace audit that defines
// void Main(Tensors t, const int64_t* a), and the candidate's function.
std::string Program(const v1::Problem& problem, std::string_view enclosed, std::string_view code,
                    const std::vector<double>& honest) {
  std::string prototype = CandidatePrototype(problem);
  prototype = prototype.substr(prototype.find("extern"));
  const std::string entry(prototype.substr(0, prototype.rfind(';')));
  std::vector<std::string> tensors;
  size_t output = 0;
  for (const v1::Tensor* tensor : Arguments(problem)) {
    const bool known = tensor->role() == v1::Tensor::OUTPUT && output < honest.size();
    tensors.push_back(TensorText(problem, *tensor, known ? honest[output++] : 0));
  }
  std::vector<std::string> axes;
  for (const v1::Axis& axis : problem.axes()) axes.push_back(axis.name());
  return absl::StrCat(
      kPreludeIncludes, Av(enclosed), kPrelude, "\nnamespace audit {\n", Av(code),
      "\nstatic void Start(Tensors t, std::vector<int64_t> a) { Main(t, a.data()); }"
      "\n}  // namespace audit\n\n",
      entry, " {\n  audit::Start({", absl::StrJoin(tensors, ",\n                "),
      "},\n               {", absl::StrJoin(axes, ", "), "});\n}\n");
}

// Fills `o` with what a version makes of t, on inputs of its own when it spoils them.
std::string ComputeText(std::string_view variable, std::string_view name_space,
                        const Version& version) {
  return absl::StrCat("  Copy copy_", Av(variable), "(t, ", version.is_reference ? "true" : "false",
                      ", ", version.before.empty() ? "false" : "true",
                      ");\n  {\n    Tensors& o = copy_", Av(variable), ".t;\n    (void)o;\n",
                      version.before, "    Run_", Av(name_space), "(o, a);\n", version.after,
                      "  }\n");
}

}  // namespace

absl::StatusOr<std::string> ReferenceSource(const v1::Problem& problem) {
  for (const v1::SourceFile& file : problem.files()) {
    if (file.path() == problem.reference()) return file.content();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(problem.name(), " has no file '", problem.reference(), "'"));
}

const v1::TolerancePolicy& ToleranceOf(const v1::Problem& problem, const v1::Tensor& tensor) {
  if (problem.contracts_size() > 0) {
    for (const auto& own : problem.contracts(0).tolerances()) {
      if (own.tensor() == tensor.name()) return own.tolerance();
    }
  }
  return tensor.tolerance();
}

std::string OracleSource(const v1::Problem& problem, std::string_view reference) {
  return WrapperSource(problem, reference, "  Emit(right, t);\n");
}

std::string WrapperSource(const v1::Problem& problem, std::string_view reference,
                          std::string_view run) {
  std::string code = CallText(problem, "original", true);
  absl::StrAppend(&code, "static void Main(Tensors& t, const int64_t* a) {\n  (void)t, (void)a;\n");
  if (absl::StrContains(Av(run), "right")) {
    absl::StrAppend(&code,
                    "  Copy copy(t, true);\n  Tensors& right = copy.t;\n"
                    "  Run_original(right, a);\n");
  }
  absl::StrAppend(&code, Av(run), "}\n");
  return Program(problem, Enclose(reference, "original"), code, {});
}

std::string MutantSource(const v1::Problem& problem, const Version& version) {
  // A candidate that is only another text needs no help.
  if (!version.is_reference && version.before.empty() && version.after.empty()) {
    return version.source;
  }
  const std::string code =
      absl::StrCat(CallText(problem, "mutant", version.is_reference),
                   "static void Main(Tensors& t, const int64_t* a) {\n",
                   ComputeText("m", "mutant", version), "  Emit(copy_m.t, t);\n}\n");
  return Program(problem, Enclose(version.source, "mutant"), code, {});
}

std::string WitnessSource(const v1::Problem& problem, const Version& original,
                          const Version& mutant, const std::vector<double>& honest, bool exact) {
  const std::string code =
      absl::StrCat(CallText(problem, "original", original.is_reference),
                   CallText(problem, "mutant", mutant.is_reference),
                   "static void Main(Tensors& t, const int64_t* a) {\n",
                   ComputeText("o", "original", original), ComputeText("m", "mutant", mutant),
                   absl::StrCat("  const bool exact = ", exact ? "true" : "false", ";\n"),
                   R"(  Emit(copy_o.t, t);
  for (size_t k = 0; k < t.size(); ++k) {
    if (!t[k].output) continue;
    const Tensor &o = copy_o.t[k], &m = copy_m.t[k];
    const int64_t size = Size(o.type);
    const bool bits = exact || !t[k].scaled;
    const std::vector<double> units = bits ? std::vector<double>() : Units(o);
    for (int64_t i = 0; i < t[k].n; ++i) {
      const double have = Get(o, i), other = Get(m, i);
      const bool same = std::memcmp(static_cast<const char*>(o.data) + i * size,
                                    static_cast<const char*>(m.data) + i * size, size) == 0;
      if (same || (!bits && std::fabs(have - other) <= t[k].honest * units[i])) continue;
      if (Floating(t[k].type)) {
        Put(t[k], i, NAN);
      } else {
        Put(t[k], i, have == 0 ? 1 : 0);
      }
    }
  }
}
)");
  return Program(
      problem, absl::StrCat(Enclose(original.source, "original"), Enclose(mutant.source, "mutant")),
      code, honest);
}

}  // namespace assay
