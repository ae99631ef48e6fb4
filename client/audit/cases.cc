#include "client/audit/cases.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "kernels/problem.h"

namespace assay {
namespace {

constexpr double kSmallBytes = 2 << 20;
constexpr double kSmallOperations = 2e7;
constexpr double kAllBytes = 512 << 20;
constexpr double kAllOperations = 4e9;

std::string Label(std::string_view name) {
  constexpr size_t kLabelMax = 64;
  std::string label = absl::StrCat("audit-", absl::string_view(name.data(), name.size()));
  for (char& c : label) {
    const bool allowed =
        std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-';
    if (!allowed) c = '_';
  }
  return label.substr(0, kLabelMax);
}

int InputCount(const v1::Problem& problem) {
  return static_cast<int>(
      std::count_if(problem.tensors().begin(), problem.tensors().end(),
                    [](const v1::Tensor& tensor) { return tensor.role() == v1::Tensor::INPUT; }));
}

// With their index among the arguments.
struct IndexedTensor {
  const v1::Tensor* tensor;
  int index;
};
std::vector<IndexedTensor> TensorsOf(const v1::Problem& problem, v1::Tensor::Role role) {
  std::vector<IndexedTensor> found;
  int index = role == v1::Tensor::INPUT ? 0 : InputCount(problem);
  for (const v1::Tensor& tensor : problem.tensors()) {
    if (tensor.role() == role) found.push_back({&tensor, index++});
  }
  return found;
}

bool IsFloating(v1::DataType type) {
  return type == v1::F32 || type == v1::F64 || type == v1::F16 || type == v1::BF16;
}

bool HasFloatingOutput(const v1::Problem& problem) {
  for (const IndexedTensor& output : TensorsOf(problem, v1::Tensor::OUTPUT)) {
    if (IsFloating(output.tensor->dtype())) return true;
  }
  return false;
}

// Statements that run for every element i of every output x, with k its index.
std::string ForOutputs(std::string_view before, std::string_view body) {
  return absl::StrReplaceAll(
      "  for (size_t k = 0; k < t.size(); ++k) {\n    if (!t[k].output) continue;\n"
      "    Tensor& x = t[k];\n$before    for (int64_t i = 0; i < x.n; ++i) {\n$body    }\n  }\n",
      {{"$before", absl::string_view(before.data(), before.size())},
       {"$body", absl::string_view(body.data(), body.size())}});
}

}  // namespace

absl::StatusOr<AuditScopes> FindScopes(const v1::Problem& problem) {
  AuditScopes scopes;
  double least = std::numeric_limits<double>::infinity();
  std::string cheapest;
  for (const v1::Workload& workload : problem.workloads()) {
    ASSAY_ASSIGN_OR_RETURN(const ResolvedWorkload resolved, ResolveWorkload(problem, workload));
    ASSAY_ASSIGN_OR_RETURN(const WorkCost cost, ComputeWorkCost(problem, resolved));
    if (cost.footprint_bytes + cost.operations < least) {
      least = cost.footprint_bytes + cost.operations;
      cheapest = workload.name();
    }
    if (cost.footprint_bytes <= kAllBytes && cost.operations <= kAllOperations) {
      scopes.all.push_back(workload.name());
    }
    if (cost.footprint_bytes > kSmallBytes || cost.operations > kSmallOperations) continue;
    scopes.small.push_back(workload.name());
    for (const TensorShape& tensor : resolved.tensors) {
      if (!tensor.is_output) continue;
      scopes.has_elements |= tensor.elements > 1;
      scopes.has_rows |= !tensor.dims.empty() && tensor.elements > tensor.dims.back();
    }
  }
  if (scopes.small.empty()) scopes.small.push_back(cheapest);
  if (scopes.all.empty()) scopes.all.push_back(cheapest);
  return scopes;
}

AuditCase CaseMaker::Wrap(std::string name, v1::Candidate candidate, AuditScope scope) const {
  AuditCase made;
  candidate.mutable_spec()->set_problem(ProblemId(problem_->name()));
  candidate.mutable_spec()->set_label(Label(name));
  candidate.mutable_spec()->mutable_origin()->set_strategy("audit");
  v1::Evaluation* evaluation = made.request.mutable_evaluation();
  evaluation->set_problem(problem_->name());
  evaluation->set_device_class("cpu");
  evaluation->set_level(v1::VERIFY);
  for (const std::string& workload : scope == AuditScope::kSmall ? scopes_->small : scopes_->all) {
    evaluation->add_workloads()->set_name(workload);
  }
  made.request.mutable_candidate()->Swap(&candidate);
  made.name = std::move(name);
  return made;
}

AuditCase CaseMaker::Source(std::string name, std::string source, AuditScope scope,
                            const v1::Candidate* options_of) const {
  v1::Candidate candidate;
  candidate.mutable_spec()->set_language(v1::CPP);
  if (options_of != nullptr) {
    *candidate.mutable_spec()->mutable_compile_options() = options_of->spec().compile_options();
  }
  // Most of an audit's time goes by in the compiler, and no verdict hangs on speed.
  candidate.mutable_spec()->add_compile_options("-O1");
  v1::SourceFile* file = candidate.add_files();
  file->set_path("audit.cc");
  file->set_content(std::move(source));
  return Wrap(std::move(name), std::move(candidate), scope);
}

AuditCase CaseMaker::Candidate(const AuditCandidate& candidate, v1::Level level,
                               const std::string& device_class, AuditScope scope) const {
  AuditCase made = Wrap(candidate.name, candidate.candidate, scope);
  v1::Evaluation* evaluation = made.request.mutable_evaluation();
  evaluation->set_level(level);
  evaluation->set_device_class(device_class);
  return made;
}

std::vector<AuditCase> TrivialCases(const v1::Problem& problem, const std::string& reference,
                                    const AuditScopes& scopes, const CaseMaker& maker) {
  std::vector<AuditCase> cases;
  const auto add = [&](std::string name, std::string_view run) {
    std::string source = WrapperSource(problem, reference, run);
    cases.push_back(maker.Source(std::move(name), std::move(source), AuditScope::kSmall));
  };
  const std::string other =
      "  Copy other(t, true, true);\n  DrawInputs(other.t);\n  Run_original(other.t, a);\n";
  const std::string moments =
      "    const Tensor& y = other.t[k];\n    double sum = 0, squares = 0;\n"
      "    for (int64_t i = 0; i < y.n; ++i) sum += Get(y, i) / y.n;\n"
      "    for (int64_t i = 0; i < y.n; ++i) squares += (Get(y, i) - sum) * (Get(y, i) - sum) / "
      "y.n;\n    Random random;\n    (void)random, (void)squares;\n";
  add("zeros", ForOutputs("", "      Put(x, i, 0);\n"));
  add("ones", ForOutputs("", "      Put(x, i, 1);\n"));
  if (HasFloatingOutput(problem)) add("nan", ForOutputs("", "      Put(x, i, NAN);\n"));
  add("nothing", "");
  add("mean", other + ForOutputs(moments, "      Put(x, i, sum);\n"));
  add("noise", other + ForOutputs(moments,
                                  "      Put(x, i, sum + std::sqrt(squares) * "
                                  "random.Normal());\n"));
  add("other_inputs", other + "  Emit(other.t, t);\n");
  for (const IndexedTensor& input : TensorsOf(problem, v1::Tensor::INPUT)) {
    add(absl::StrCat("copy_of_", input.tensor->name()),
        ForOutputs("", absl::StrCat("      const Tensor& from = t[", input.index,
                                    "];\n      Put(x, i, Get(from, i % from.n));\n")));
  }
  add("stale",
      "  static std::vector<std::vector<double>> last;\n"
      "  std::vector<std::vector<double>> now(t.size());\n" +
          ForOutputs("",
                     "      now[k].push_back(Get(right[k], i));\n"
                     "      const bool known = k < last.size() && size_t(i) < last[k].size();\n"
                     "      Put(x, i, known ? last[k][i] : 0);\n") +
          "  last.swap(now);\n");
  if (scopes.has_rows) {
    add("first_row", ForOutputs("", "      Put(x, i, Get(right[k], i % x.row));\n"));
  }
  if (scopes.has_elements) {
    add("three_in_a_thousand",
        ForOutputs("",
                   "      if (i < std::max<int64_t>(1, x.n * 3 / 1000)) Put(x, i, "
                   "Get(right[k], i));\n"));
  }
  return cases;
}

std::vector<AuditCase> SensitivityCases(const v1::Problem& problem, const std::string& reference,
                                        bool reflect, const CaseMaker& maker) {
  std::vector<AuditCase> cases;
  struct Part {
    const char* name;
    const char* first;
    const char* last;
  };
  constexpr Part kParts[] = {
      {"block", "x.n / 2", "std::min(x.n, x.n / 2 + std::max<int64_t>(1, x.n / 64))"},
      {"last", "x.n - 1", "x.n"}};
  for (const IndexedTensor& input : TensorsOf(problem, v1::Tensor::INPUT)) {
    for (const Part& part : kParts) {
      const std::string run = absl::StrCat(
          "  Copy c(t, true, true);\n  Tensor& x = c.t[", input.index,
          "];\n  const int64_t last = ", part.last, ";\n  for (int64_t i = ", part.first,
          "; i < last; ++i) Change(x, i, ", reflect ? "true" : "false",
          ");\n  Run_original(c.t, a);\n  Emit(c.t, t);\n");
      cases.push_back(maker.Source(absl::StrCat(input.tensor->name(), "_", part.name),
                                   WrapperSource(problem, reference, run), AuditScope::kSmall));
    }
  }
  return cases;
}

std::vector<AuditCase> AxisCases(const v1::Problem& problem, const std::string& reference,
                                 const CaseMaker& maker) {
  std::vector<AuditCase> cases;
  for (int k = 0; k < problem.axes_size(); ++k) {
    const std::string run = absl::StrCat(
        "  std::vector<int64_t> b(a, a + ", problem.axes_size(), ");\n  if (b[", k, "] > 1) --b[",
        k, "];\n  Copy c(t, true);\n  Run_original(c.t, b.data());\n  Emit(c.t, t);\n");
    cases.push_back(maker.Source(absl::StrCat("axis_", problem.axes(k).name()),
                                 WrapperSource(problem, reference, run), AuditScope::kSmall));
  }
  return cases;
}

LivenessCases MakeLivenessCases(const v1::Problem& problem, const std::string& reference,
                                const CaseMaker& maker) {
  LivenessCases cases;
  struct Part {
    const char* name;
    const char* first;
    const char* last;
  };
  constexpr Part kParts[] = {{"element", "o.n / 3", "o.n / 3 + 1"},
                             {"row", "o.n / o.row / 2 * o.row", "o.n / o.row / 2 * o.row + o.row"},
                             {"all", "0", "o.n"}};
  for (const IndexedTensor& output : TensorsOf(problem, v1::Tensor::OUTPUT)) {
    const std::string& name = output.tensor->name();
    if (ToleranceOf(problem, *output.tensor).kind() == v1::TolerancePolicy::BITWISE) {
      const std::string run =
          absl::StrCat("  Emit(right, t);\n  Tensor& x = t[", output.index,
                       "];\n  static_cast<unsigned char*>(x.data)[x.n / 3 * Size(x.type)] ^= 1;\n");
      cases.reject.push_back(maker.Source(absl::StrCat(name, "_one_bit"),
                                          WrapperSource(problem, reference, run),
                                          AuditScope::kSmall));
      continue;
    }
    // `size` of the error of element i of o, whose value is v and whose unit is units[i]. What is
    // written lies on the side of `size` that the case is about, whatever the output's type rounds
    // to.
    const auto make = [&](const std::string& part, std::string_view first, std::string_view last,
                          bool accept, std::string_view size) {
      const std::string run = absl::StrReplaceAll(
          R"(  Emit(right, t);
  const Tensor &o = right[$index], &x = t[$index];
  const std::vector<double> units = Units(o);
  const int64_t last = $last;
  for (int64_t i = $first; i < last; ++i) {
    const double v = Get(o, i), size = $size;
    double step = 1;
    for (int tries = 0; tries < 12; ++tries, step *= $factor) {
      Put(x, i, v + step * std::copysign(size, v));
      if (std::fabs(Get(x, i) - v) $compare size) break;
    }
    if (!(std::fabs(Get(x, i) - v) $compare size)) Put(x, i, v);
  }
)",
          {{"$index", absl::StrCat(output.index)},
           {"$first", absl::string_view(first.data(), first.size())},
           {"$last", absl::string_view(last.data(), last.size())},
           {"$size", absl::string_view(size.data(), size.size())},
           {"$factor", accept ? "0.75" : "1.25"},
           {"$compare", accept ? "<=" : ">="}});
      (accept ? cases.accept : cases.reject)
          .push_back(maker.Source(absl::StrCat(name, "_", part, accept ? "_half" : "_twice"),
                                  WrapperSource(problem, reference, run), AuditScope::kSmall));
    };
    for (const Part& part : kParts) {
      make(part.name, part.first, part.last, true,
           "0.5 * std::min(o.l2 * std::fabs(v), o.element * units[i])");
      make(part.name, part.first, part.last, false, "2 * o.element * units[i]");
    }
    make("norm", "0", "o.n", false, "2 * o.l2 * std::fabs(v)");
  }
  return cases;
}

std::vector<std::string> ForbiddenRoundings(const v1::Problem& problem) {
  bool wide = false;
  for (const v1::Tensor& tensor : problem.tensors()) wide |= tensor.dtype() == v1::F64;
  std::vector<std::string> roundings;
  if (wide) roundings.push_back("audit_f32");
  bool eleven = false;
  bool eight = false;
  if (problem.contracts_size() > 0) {
    for (const int allowed : problem.contracts(0).operand_roundings()) {
      eleven = true;
      eight |= allowed == v1::ArithmeticContract::BFLOAT;
    }
  }
  if (!eleven) {
    roundings.push_back("audit_tf32");
    roundings.push_back("audit_f16");
  }
  if (!eight) roundings.push_back("audit_bf16");
  return roundings;
}

std::vector<Spoiler> Spoilers(const v1::Problem& problem) {
  const std::string pick = "    Tensor& x = Largest(o);\n    (void)x;\n";
  std::vector<Spoiler> spoilers;
  const auto universal = [&](const char* what, const std::string& after, bool is_slight = false) {
    spoilers.push_back({"universal", what, "", pick + after, is_slight});
  };
  universal("the last element is 0", "    Put(x, x.n - 1, 0);\n",
            /*is_slight=*/true);
  universal("the last row is 0", "    for (int64_t i = x.n - x.row; i < x.n; ++i) Put(x, i, 0);\n");
  universal("what blocks of 8 leave over is 0",
            "    for (int64_t i = x.n / 8 * 8; i < x.n; ++i) Put(x, i, 0);\n");
  universal("every 64th element is 0",
            "    for (int64_t i = 63; i < x.n; i += 64) Put(x, i, 0);\n");
  universal("results stand one element too early",
            "    for (int64_t i = 0; i + 1 < x.n; ++i) Put(x, i, Get(x, i + 1));\n");
  universal("the first and the last element change places",
            "    const double first = Get(x, 0);\n    Put(x, 0, Get(x, x.n - 1));\n"
            "    Put(x, x.n - 1, first);\n",
            /*is_slight=*/true);
  universal("the first two rows change places",
            "    for (int64_t i = 0; 2 * x.row <= x.n && i < x.row; ++i) {\n"
            "      const double first = Get(x, i);\n      Put(x, i, Get(x, i + x.row));\n"
            "      Put(x, i + x.row, first);\n    }\n");
  universal("the result is transposed",
            "    std::vector<double> old(x.n);\n"
            "    for (int64_t i = 0; i < x.n; ++i) old[i] = Get(x, i);\n"
            "    const int64_t rows = x.n / x.row;\n"
            "    for (int64_t i = 0; i < x.n; ++i) Put(x, i, old[i % rows * x.row + i / rows]);\n");
  universal("one element has the other sign", "    Put(x, x.n / 2, -Get(x, x.n / 2));\n",
            /*is_slight=*/true);
  universal("the second half repeats the first",
            "    for (int64_t i = (x.n + 1) / 2; i < x.n; ++i) Put(x, i, Get(x, i - (x.n + 1) / "
            "2));\n");
  universal("results beyond half of the largest saturate",
            "    double top = 0;\n"
            "    for (int64_t i = 0; i < x.n; ++i) top = std::max(top, std::fabs(Get(x, i)));\n"
            "    for (int64_t i = 0; i < x.n; ++i) {\n"
            "      Put(x, i, std::min(std::max(Get(x, i), -top / 2), top / 2));\n    }\n");
  universal("everything is a hundredth larger",
            "    for (int64_t i = 0; i < x.n; ++i) Put(x, i, Get(x, i) * 1.01);\n",
            /*is_slight=*/true);
  if (HasFloatingOutput(problem)) {
    universal("one element is NaN", "    Put(x, x.n / 2, NAN);\n");
    universal("the largest element is an infinity",
              "    int64_t at = 0;\n    for (int64_t i = 0; i < x.n; ++i) {\n"
              "      if (std::fabs(Get(x, i)) > std::fabs(Get(x, at))) at = i;\n    }\n"
              "    Put(x, at, INFINITY);\n");
  }
  for (const std::string& rounding : ForbiddenRoundings(problem)) {
    const int bits = rounding == "audit_f32" ? 24 : rounding == "audit_bf16" ? 8 : 11;
    if (rounding == "audit_f16") continue;  // as many bits as tf32
    for (const v1::Tensor::Role role : {v1::Tensor::INPUT, v1::Tensor::OUTPUT}) {
      for (const IndexedTensor& one : TensorsOf(problem, role)) {
        if (one.tensor->dtype() != v1::F32 && one.tensor->dtype() != v1::F64) continue;
        const std::string text = absl::StrCat(
            "    for (int64_t i = 0; i < o[", one.index, "].n; ++i) {\n      Put(o[", one.index,
            "], i, Significant(Get(o[", one.index, "], i), ", bits, ", false));\n    }\n");
        const bool input = role == v1::Tensor::INPUT;
        spoilers.push_back({"precision",
                            absl::StrCat(one.tensor->name(), " is rounded to ", bits, " bits"),
                            input ? text : "", input ? "" : text});
      }
    }
  }
  return spoilers;
}

}  // namespace assay
