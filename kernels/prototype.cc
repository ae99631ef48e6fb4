// C prototypes of candidates and references, and the shim that calls them.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "assay/v1/problem.pb.h"
#include "base/strings.h"
#include "kernels/problem.h"

namespace assay {
namespace {

struct Argument {
  std::string type;  // e.g. "const float*"
  std::string name;
};

std::string PointerType(const v1::Tensor& tensor, bool reference) {
  const bool output = tensor.role() == v1::Tensor::OUTPUT;
  const bool wide = reference && output && tensor.tolerance().kind() == v1::TolerancePolicy::SCALED;
  const DataType dtype = wide ? DataType::kF64 : static_cast<DataType>(tensor.dtype());
  return absl::StrCat(output ? "" : "const ", Av(DataTypeCpp(dtype)), "*");
}

// Inputs, then outputs, each in the problem's order.
std::vector<Argument> TensorArguments(const v1::Problem& problem, bool reference) {
  std::vector<Argument> arguments;
  for (const v1::Tensor::Role role : {v1::Tensor::INPUT, v1::Tensor::OUTPUT}) {
    for (const v1::Tensor& tensor : problem.tensors()) {
      if (tensor.role() != role) continue;
      arguments.push_back({PointerType(tensor, reference), tensor.name()});
    }
  }
  return arguments;
}

std::string FunctionName(const v1::Problem& problem, bool reference) {
  return absl::StrCat(ProblemId(problem.name()), reference ? "_reference" : "");
}

std::string Prototype(const v1::Problem& problem, bool reference) {
  std::vector<std::string> parts;
  for (const Argument& argument : TensorArguments(problem, reference)) {
    parts.push_back(absl::StrCat(argument.type, " ", argument.name));
  }
  for (const v1::Axis& axis : problem.axes()) {
    parts.push_back(absl::StrCat("int64_t ", axis.name()));
  }
  return absl::StrCat("#include <cstdint>\nextern \"C\" void ", FunctionName(problem, reference),
                      "(", absl::StrJoin(parts, ", "), ");\n");
}

}  // namespace

std::string CandidatePrototype(const v1::Problem& problem) { return Prototype(problem, false); }

std::string ReferencePrototype(const v1::Problem& problem) { return Prototype(problem, true); }

std::string InvokeSource(const v1::Problem& problem, bool reference) {
  std::vector<std::string> parts;
  for (const Argument& argument : TensorArguments(problem, reference)) {
    parts.push_back(absl::StrCat("static_cast<", argument.type, ">(tensors[", parts.size(), "])"));
  }
  for (int i = 0; i < problem.axes_size(); ++i) parts.push_back(absl::StrCat("axes[", i, "]"));
  return absl::StrCat(Prototype(problem, reference),
                      "extern \"C\" __attribute__((visibility(\"default\"))) void assay_invoke(\n"
                      "    void* const* tensors, const int64_t* axes) {\n  ",
                      FunctionName(problem, reference), "(", absl::StrJoin(parts, ",\n      "),
                      ");\n}\n");
}

}  // namespace assay
