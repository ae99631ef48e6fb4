#include "emulator/ptx/operand.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/strings.h"
#include "emulator/ptx/constant.h"

namespace assay::emulator {
namespace {

constexpr std::string_view kVectorSpecials[] = {
    "tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid",
};

constexpr std::string_view kScalarSpecials[] = {
    "laneid",
    "warpid",
    "nwarpid",
    "smid",
    "nsmid",
    "gridid",
    "is_explicit_cluster",
    "cluster_ctarank",
    "cluster_nctarank",
    "lanemask_eq",
    "lanemask_le",
    "lanemask_lt",
    "lanemask_ge",
    "lanemask_gt",
    "clock",
    "clock_hi",
    "clock64",
    "globaltimer",
    "globaltimer_lo",
    "globaltimer_hi",
    "total_smem_size",
    "aggr_smem_size",
    "dynamic_smem_size",
    "reserved_smem_offset_begin",
    "reserved_smem_offset_end",
    "reserved_smem_offset_cap",
    "reserved_smem_offset_0",
    "reserved_smem_offset_1",
    "current_graph_exec",
};

struct NumberedSpecial {
  std::string_view prefix;
  int count;
  std::string_view suffix;
};
constexpr NumberedSpecial kNumberedSpecials[] = {
    {"envreg", 32, ""}, {"pm", 8, ""}, {"pm", 8, "_64"}};

bool IsNumberedSpecial(std::string_view name) {
  for (const NumberedSpecial& special : kNumberedSpecials) {
    for (int i = 0; i < special.count; ++i) {
      if (name == absl::StrCat(Av(special.prefix), i, Av(special.suffix))) return true;
    }
  }
  return false;
}

bool IsComponent(std::string_view suffix) {
  return suffix == ".x" || suffix == ".y" || suffix == ".z" || suffix == ".w";
}

// Index of a component of a vector register; -1: none. The second name is that of colours.
int ComponentIndex(std::string_view suffix) {
  if (suffix.size() != 2) return -1;
  size_t index = std::string_view("xyzw").find(suffix[1]);
  if (index == std::string_view::npos) index = std::string_view("rgba").find(suffix[1]);
  return index == std::string_view::npos ? -1 : static_cast<int>(index);
}

bool BeginsConstant(const Reader& reader) {
  const Token& token = reader.token();
  if (token.kind == Token::Kind::kPunctuation) {
    return std::string_view("(+-!~").find(token.text[0]) != std::string_view::npos;
  }
  return token.kind == Token::Kind::kInteger || token.kind == Token::Kind::kFloat ||
         reader.Is("WARP_SZ");
}

Operand RegisterOperand(int reg) {
  Operand operand;
  operand.kind = Operand::Kind::kRegister;
  operand.reg = reg;
  return operand;
}

}  // namespace

bool IsSpecialRegister(std::string_view name) {
  if (name.size() < 2 || name.front() != '%') return false;
  name.remove_prefix(1);
  const auto is_in = [](const auto& list, std::string_view word) {
    return std::find(std::begin(list), std::end(list), word) != std::end(list);
  };
  if (is_in(kScalarSpecials, name) || is_in(kVectorSpecials, name)) return true;
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos) return IsNumberedSpecial(name);
  return IsComponent(name.substr(dot)) && is_in(kVectorSpecials, name.substr(0, dot));
}

absl::Status OperandParser::ParseList(bool is_call, std::vector<Operand>* operands) {
  symbols_.clear();
  has_unknown_ = false;
  if (reader_->Is(";")) return absl::OkStatus();
  if (reader_->at_end() || reader_->Is("}")) return reader_->Expected("an operand or ';'");
  do {
    Operand operand;
    ASSAY_RETURN_IF_ERROR(Parse(is_call, &operand));
    operands->push_back(std::move(operand));
  } while (reader_->Accept(","));
  return absl::OkStatus();
}

void OperandParser::Refer(std::vector<Operand>* operands) {
  if (!has_unknown_) return;
  size_t next = 0;
  ReferFrom(operands, &next);
}

void OperandParser::ReferFrom(std::vector<Operand>* operands, size_t* next) {
  for (Operand& operand : *operands) {
    if (!operand.symbol.empty() && operand.kind != Operand::Kind::kSpecial) {
      const Reference& reference = symbols_[(*next)++];
      if (!reference.name.empty()) scopes_->Refer(reference, &operand.symbol);
    }
    ReferFrom(&operand.elements, next);
  }
}

absl::Status OperandParser::Parse(bool is_call, Operand* operand) {
  ASSAY_RETURN_IF_ERROR(reader_->Charge(1));
  const Nesting nesting(reader_);
  ASSAY_RETURN_IF_ERROR(nesting.Check());
  if (reader_->Accept("{")) {
    operand->kind = Operand::Kind::kVector;
    ASSAY_RETURN_IF_ERROR(ParseElements("}", &operand->elements));
    return ParsePair(operand);
  }
  if (is_call && reader_->Accept("(")) {
    operand->kind = Operand::Kind::kVector;
    return ParseElements(")", &operand->elements);
  }
  if (reader_->Accept("[")) return ParseAddress(operand);
  if (reader_->Is("!") && reader_->Peek().kind == Token::Kind::kIdentifier) {
    reader_->Advance();
    operand->kind = Operand::Kind::kRegister;
    operand->negated = true;
    return ParsePredicate(&operand->reg);
  }
  if (reader_->Accept("_")) {
    operand->kind = Operand::Kind::kSink;
    return ParsePair(operand);
  }
  if (reader_->IsIdentifier() && !reader_->Is("WARP_SZ")) {
    ASSAY_RETURN_IF_ERROR(ParseName(operand));
    return ParsePair(operand);
  }
  return ParseConstantOperand(operand);
}

absl::Status OperandParser::ParseElements(std::string_view close, std::vector<Operand>* elements) {
  if (reader_->Accept(close)) return absl::OkStatus();
  do {
    Operand element;
    ASSAY_RETURN_IF_ERROR(Parse(false, &element));
    elements->push_back(std::move(element));
  } while (reader_->Accept(","));
  return reader_->Expect(close);
}

absl::Status OperandParser::ParseConstantOperand(Operand* operand) {
  if (!BeginsConstant(*reader_)) return reader_->Expected("an operand");
  Constant constant;
  ASSAY_RETURN_IF_ERROR(ParseConstant(reader_, &constant));
  operand->kind = constant.is_float ? Operand::Kind::kFloat : Operand::Kind::kInteger;
  operand->single = constant.single;
  operand->bits = constant.bits;
  return absl::OkStatus();
}

absl::Status OperandParser::ParsePredicate(int* reg) {
  const std::string_view name = reader_->token().text;
  if (!reader_->IsIdentifier()) return reader_->Expected("a predicate register");
  const Binding binding = scopes_->Find(name);
  if (binding.kind != Binding::Kind::kRegister) {
    return reader_->Error(absl::StrCat("'", Av(name), "' is no declared predicate register"));
  }
  *reg = binding.reg;
  reader_->Advance();
  return absl::OkStatus();
}

absl::Status OperandParser::ParsePair(Operand* operand) {
  if (!reader_->Accept("|")) return absl::OkStatus();
  if (reader_->Accept("_")) return absl::OkStatus();
  return ParsePredicate(&operand->pair);
}

absl::Status OperandParser::ParseOffset(int64_t* offset) {
  if (!reader_->Accept("+") && !reader_->Is("-")) return absl::OkStatus();
  return ParseIntegerConstant(reader_, "an offset", INT64_MIN, INT64_MAX, offset);
}

absl::Status OperandParser::ParseName(Operand* operand) {
  const std::string_view name = reader_->token().text;
  const Binding binding = scopes_->Find(name);
  switch (binding.kind) {
    case Binding::Kind::kRegister:
      *operand = RegisterOperand(binding.reg);
      reader_->Advance();
      return absl::OkStatus();
    case Binding::Kind::kVector:
      return ParseVectorRegister(name, binding, operand);
    case Binding::Kind::kVariable:
      ASSAY_RETURN_IF_ERROR(reader_->ChargeText(binding.unique));
      operand->symbol = binding.unique;
      symbols_.emplace_back();
      break;
    case Binding::Kind::kNone:
      if (name.front() == '%') return ParseSpecial(name, operand);
      operand->symbol = std::string(name);
      symbols_.push_back({name, reader_->line()});
      has_unknown_ = true;
      break;
  }
  operand->kind = Operand::Kind::kSymbol;
  reader_->Advance();
  if (reader_->Is("[")) {
    return reader_->Error(absl::StrCat("array elements like ", Av(name),
                                       "[1] are not supported; write the offset in bytes"));
  }
  return ParseOffset(&operand->offset);
}

absl::Status OperandParser::ParseSpecial(std::string_view name, Operand* operand) {
  const int line = reader_->line();
  reader_->Advance();
  operand->kind = Operand::Kind::kSpecial;
  operand->symbol = std::string(name);
  if (reader_->IsDotWord()) {
    operand->symbol.append(reader_->token().text);
    reader_->Advance();
  }
  if (IsSpecialRegister(operand->symbol)) return absl::OkStatus();
  return Reader::ErrorAt(line, absl::StrCat("register '", operand->symbol,
                                            "' is neither declared nor a special register"));
}

absl::Status OperandParser::ParseVectorRegister(std::string_view name, const Binding& binding,
                                                Operand* operand) {
  reader_->Advance();
  if (reader_->IsDotWord()) {
    const int index = ComponentIndex(reader_->token().text);
    if (index < 0 || index >= binding.width) {
      return reader_->Error(
          absl::StrCat("'", Av(name), "' has no component '", Av(reader_->token().text), "'"));
    }
    reader_->Advance();
    *operand = RegisterOperand(binding.reg + index);
    return absl::OkStatus();
  }
  ASSAY_RETURN_IF_ERROR(reader_->Charge(binding.width));
  operand->kind = Operand::Kind::kVector;
  for (int i = 0; i < binding.width; ++i) {
    operand->elements.push_back(RegisterOperand(binding.reg + i));
  }
  return absl::OkStatus();
}

absl::Status OperandParser::ParseAddress(Operand* operand) {
  if (reader_->IsIdentifier() && !reader_->Is("WARP_SZ")) {
    ASSAY_RETURN_IF_ERROR(ParseName(operand));
    if (operand->kind != Operand::Kind::kRegister && operand->kind != Operand::Kind::kSymbol) {
      return reader_->Error("the base of an address is neither a register nor a name");
    }
    if (operand->kind == Operand::Kind::kRegister) {
      ASSAY_RETURN_IF_ERROR(ParseOffset(&operand->offset));
    }
  } else {
    ASSAY_RETURN_IF_ERROR(
        ParseIntegerConstant(reader_, "an address", INT64_MIN, INT64_MAX, &operand->offset));
  }
  operand->kind = Operand::Kind::kAddress;
  if (reader_->Accept(",")) return ParseElements("]", &operand->elements);
  ASSAY_RETURN_IF_ERROR(reader_->Expect("]"));
  // A hint of ld and st that the address is in unified memory.
  reader_->Accept(".unified");
  return absl::OkStatus();
}

}  // namespace assay::emulator
