#include "kernels/contract.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "assay/v1/problem.pb.h"
#include "base/status.h"
#include "base/strings.h"
#include "kernels/text.h"

namespace assay {

absl::StatusOr<const v1::ArithmeticContract*> FindContract(const v1::Problem& problem,
                                                           std::string_view name) {
  if (name.empty()) return problem.contracts().empty() ? nullptr : &problem.contracts(0);
  for (const v1::ArithmeticContract& contract : problem.contracts()) {
    if (contract.name() == name) return &contract;
  }
  const std::string known = absl::StrJoin(problem.contracts(), ", ",
                                          [](std::string* out, const v1::ArithmeticContract& one) {
                                            absl::StrAppend(out, one.name());
                                          });
  return ErrorWithReason(absl::StatusCode::kInvalidArgument, "CONTRACT_UNKNOWN",
                         absl::StrCat("contract ", Quoted(name), " is none of the problem's; ",
                                      known.empty() ? "it has none, so leave `contract` out"
                                                    : absl::StrCat("it has ", known)));
}

absl::StatusOr<v1::Problem> ProblemUnderContract(const v1::Problem& problem,
                                                 std::string_view name) {
  ASSAY_ASSIGN_OR_RETURN(const v1::ArithmeticContract* contract, FindContract(problem, name));
  v1::Problem out = problem;
  if (contract == nullptr) return out;
  out.clear_contracts();
  *out.add_contracts() = *contract;
  for (const auto& instead : contract->tolerances()) {
    for (v1::Tensor& tensor : *out.mutable_tensors()) {
      if (tensor.name() == instead.tensor()) *tensor.mutable_tolerance() = instead.tolerance();
    }
  }
  // Matrix units multiply rounded operands far faster than f32; none faster than f16.
  if (!contract->operand_roundings().empty() && out.work().unit() == v1::WorkModel::FLOP_F32) {
    out.mutable_work()->set_unit(v1::WorkModel::FLOP_F16);
  }
  return out;
}

}  // namespace assay
