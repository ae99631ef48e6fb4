// Operations of the built device code in narrower types than the problem's arithmetic contract
// names. Whether the result keeps its precision is told by its errors: splits of one wide value
// into several narrow ones are honest. A notice only.
#include <algorithm>
#include <optional>

#include "assay/v1/candidate.pb.h"
#include "assay/v1/evaluation.pb.h"
#include "assay/v1/problem.pb.h"
#include "worker/detect/detector.h"
#include "worker/detect/ptx_tally.h"

namespace assay {
namespace {

constexpr std::string_view kConversions = "conversions to narrower types than the contract names";
constexpr std::string_view kMatrix = "matrix operations on narrower types than the contract names";
constexpr std::string_view kArithmetic = "operations in narrower types than the contract names";
constexpr std::string_view kApproximate = "approximate functions";

// What the contract asks for, where it asks for f32 or f64 throughout.
struct Wide {
  bool is_f64 = false;
  bool allows_tf32 = false;
  bool allows_f16 = false;
  bool allows_bf16 = false;
  bool allows_approximate = false;
};

Wide WideOf(const v1::ArithmeticContract& contract) {
  Wide wide;
  wide.is_f64 = contract.accumulator() == v1::F64;
  wide.allows_approximate = contract.approximate_functions();
  for (const int rounding : contract.operand_roundings()) {
    wide.allows_tf32 |= rounding == v1::ArithmeticContract::TF32;
    wide.allows_f16 |= rounding == v1::ArithmeticContract::HALF;
    wide.allows_bf16 |= rounding == v1::ArithmeticContract::BFLOAT;
  }
  return wide;
}

// nullopt: narrow types are the problem's own, or nothing is rounded at all.
std::optional<Wide> WideOf(const v1::Problem& problem, const std::string& contract_name) {
  bool has_float_input = false;
  Wide wide;
  for (const v1::Tensor& tensor : problem.tensors()) {
    if (tensor.dtype() == v1::F16 || tensor.dtype() == v1::BF16) return std::nullopt;
    const bool is_float = tensor.dtype() == v1::F32 || tensor.dtype() == v1::F64;
    has_float_input |= is_float && tensor.role() == v1::Tensor::INPUT;
    if (tensor.role() == v1::Tensor::OUTPUT) wide.is_f64 |= tensor.dtype() == v1::F64;
  }
  for (const v1::ArithmeticContract& contract : problem.contracts()) {
    if (!contract_name.empty() && contract.name() != contract_name) continue;
    const bool is_wide = contract.accumulator() == v1::F32 || contract.accumulator() == v1::F64;
    return is_wide ? std::optional<Wide>(WideOf(contract)) : std::nullopt;
  }
  return has_float_input ? std::optional<Wide>(wide) : std::nullopt;
}

// Whether a type, the part of an opcode between two dots, is narrower than allowed.
bool IsNarrow(std::string_view type, const Wide& wide) {
  if (type == "f16" || type == "f16x2") return !wide.allows_f16;
  if (type == "bf16" || type == "bf16x2") return !wide.allows_bf16;
  if (type == "tf32") return !wide.allows_tf32;
  if (type == "f32" || type == "f32x2") return wide.is_f64;
  return type.starts_with("e4m3") || type.starts_with("e5m2") || type.starts_with("e2m") ||
         type.starts_with("e3m2");
}

bool IsFloat(std::string_view type) {
  return type.starts_with("f16") || type.starts_with("bf16") || type.starts_with("f32") ||
         type.starts_with("f64") || type == "tf32" || type.starts_with("e4m3") ||
         type.starts_with("e5m2") || type.starts_with("e2m") || type.starts_with("e3m2");
}

std::vector<std::string_view> Parts(std::string_view opcode) {
  std::vector<std::string_view> parts;
  while (!opcode.empty()) {
    const size_t end = std::min(opcode.find('.'), opcode.size());
    parts.push_back(opcode.substr(0, end));
    opcode.remove_prefix(std::min(end + 1, opcode.size()));
  }
  return parts;
}

constexpr std::string_view kArithmeticMnemonics[] = {"add", "sub", "mul",  "fma",  "mad",  "div",
                                                     "rcp", "ex2", "tanh", "sqrt", "rsqrt"};

void Take(const PtxStatement& statement, const Wide& wide, PtxTally* tally) {
  const std::vector<std::string_view> parts = Parts(statement.opcode);
  if (parts.empty()) return;
  const auto narrow = std::find_if(parts.begin() + 1, parts.end(),
                                   [&](std::string_view part) { return IsNarrow(part, wide); });
  const std::string_view mnemonic = parts[0];
  if (mnemonic == "cvt") {
    // The first type is the destination's. Of integers nothing is known.
    const auto to = std::find_if(parts.begin() + 1, parts.end(), IsFloat);
    const bool from_float = to != parts.end() && std::any_of(to + 1, parts.end(), IsFloat);
    if (from_float && IsNarrow(*to, wide) && *to != parts.back()) {
      tally->Add(kConversions, statement.opcode, statement);
    }
  } else if (mnemonic == "mma" || mnemonic == "wgmma" ||
             (mnemonic == "wmma" && statement.Has("mma")) || mnemonic == "tcgen05") {
    if (narrow != parts.end()) tally->Add(kMatrix, statement.opcode, statement);
  } else if (std::find(std::begin(kArithmeticMnemonics), std::end(kArithmeticMnemonics),
                       mnemonic) != std::end(kArithmeticMnemonics) &&
             narrow != parts.end()) {
    tally->Add(kArithmetic, statement.opcode, statement);
  }
  if (!wide.allows_approximate && statement.Has("approx")) {
    tally->Add(kApproximate, statement.opcode, statement);
  }
}

class PrecisionInstructionsDetector : public Detector {
 public:
  std::string_view name() const override { return "precision_instructions"; }

  std::vector<DetectorFinding> Inspect(const Evidence& evidence) const override {
    if (evidence.problem == nullptr || evidence.candidate == nullptr || evidence.ptx.empty()) {
      return {};
    }
    const std::optional<Wide> wide =
        WideOf(*evidence.problem, evidence.candidate->spec().contract());
    if (!wide.has_value()) return {};
    PtxStatements statements(evidence.ptx);
    PtxStatement statement;
    PtxTally tally;
    while (statements.Next(&statement)) {
      if (statement.kind == PtxStatement::Kind::kInstruction) Take(statement, *wide, &tally);
    }
    return tally.Notices(statements.files());
  }
};

}  // namespace

std::unique_ptr<Detector> MakePrecisionInstructionsDetector() {
  return std::make_unique<PrecisionInstructionsDetector>();
}

}  // namespace assay
