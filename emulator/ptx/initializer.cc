#include <bit>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/strings.h"
#include "emulator/ptx/constant.h"
#include "emulator/ptx/declaration.h"

namespace assay::emulator {
namespace {

enum class ValueKind : uint8_t { kInteger, kSingle, kDouble, kNeither };

// How a number is stored in an element; `is_float` when it was written as one.
ValueKind StoredAs(Type type, bool is_float) {
  switch (type) {
    case Type::kF32:
      return ValueKind::kSingle;
    case Type::kF64:
      return ValueKind::kDouble;
    case Type::kB32:
      return is_float ? ValueKind::kSingle : ValueKind::kInteger;
    case Type::kB64:
      return is_float ? ValueKind::kDouble : ValueKind::kInteger;
    case Type::kB8:
    case Type::kB16:
    case Type::kU8:
    case Type::kU16:
    case Type::kU32:
    case Type::kU64:
    case Type::kS8:
    case Type::kS16:
    case Type::kS32:
    case Type::kS64:
      return is_float ? ValueKind::kNeither : ValueKind::kInteger;
    default:
      return ValueKind::kNeither;
  }
}

uint64_t ElementBits(const Constant& constant, ValueKind kind) {
  if (kind == ValueKind::kInteger) return constant.bits;
  if (constant.is_float && constant.single == (kind == ValueKind::kSingle)) return constant.bits;
  if (kind == ValueKind::kDouble) return std::bit_cast<uint64_t>(constant.AsDouble());
  return std::bit_cast<uint32_t>(static_cast<float>(constant.AsDouble()));
}

// Reads the image of one variable. `position_` is the byte of the next element.
class Initializer {
 public:
  Initializer(Reader* reader, const DeclaredType& declared, const Declarator& declarator,
              Variable* variable, std::vector<Reference>* references)
      : reader_(reader),
        declared_(declared),
        variable_(variable),
        references_(references),
        name_(declarator.name) {
    // Bytes of what a brace of each level encloses, the innermost last.
    std::vector<int64_t> dimensions = declarator.dimensions;
    if (declared.width > 1) dimensions.push_back(declared.width);
    int64_t bytes = TypeBytes(declared.type);
    for (auto size = dimensions.rbegin(); size != dimensions.rend(); ++size) {
      bytes *= *size;
      level_bytes_.insert(level_bytes_.begin(), bytes);
    }
    row_bytes_ = bytes;
    if (declarator.is_unsized) {
      level_bytes_.insert(level_bytes_.begin(), reader->limits().variable_bytes_max);
    } else if (level_bytes_.empty()) {
      level_bytes_.push_back(bytes);
    }
  }

  absl::Status Parse() {
    if (reader_->Is("{")) return Braces(0, 0);
    return Element(level_bytes_[0]);
  }

  // Of what was written in an array of unknown size: whole rows.
  int64_t unsized_bytes() const {
    return row_bytes_ == 0 ? 0 : (position_ + row_bytes_ - 1) / row_bytes_ * row_bytes_;
  }

 private:
  // The block of level `level` that begins at `begin`.
  absl::Status Braces(size_t level, int64_t begin) {
    const Nesting nesting(reader_);
    ASSAY_RETURN_IF_ERROR(nesting.Check());
    if (level >= level_bytes_.size()) {
      return Error("has more braces than dimensions");
    }
    const int64_t end = begin + level_bytes_[level];
    ASSAY_RETURN_IF_ERROR(reader_->Expect("{"));
    while (!reader_->Accept("}")) {
      if (reader_->Is("{")) {
        const int64_t inner = position_;
        const int64_t inner_bytes = level + 1 < level_bytes_.size() ? level_bytes_[level + 1] : 0;
        if (inner + inner_bytes > end) return TooMany();
        if (inner_bytes > 0 && (inner - begin) % inner_bytes != 0) {
          return Error("opens a brace in the middle of a row");
        }
        ASSAY_RETURN_IF_ERROR(Braces(level + 1, inner));
        position_ = inner + inner_bytes;
      } else {
        ASSAY_RETURN_IF_ERROR(Element(end));
      }
      if (!reader_->Accept(",") && !reader_->Is("}")) return reader_->Expected("',' or '}'");
    }
    return absl::OkStatus();
  }

  absl::Status Element(int64_t end) {
    const int64_t bytes = TypeBytes(declared_.type);
    if (position_ + bytes > end) return TooMany();
    if (reader_->IsIdentifier() && !reader_->Is("WARP_SZ")) {
      ASSAY_RETURN_IF_ERROR(Pointer());
      variable_->init.resize(static_cast<size_t>(position_ + bytes));
    } else {
      ASSAY_RETURN_IF_ERROR(Number(bytes));
    }
    position_ += bytes;
    return absl::OkStatus();
  }

  absl::Status Number(int64_t bytes) {
    Constant constant;
    ASSAY_RETURN_IF_ERROR(ParseConstant(reader_, &constant));
    if (reader_->Is("(")) {
      return Error("has a masked address like 0xFF(name), which is not supported");
    }
    const ValueKind kind = StoredAs(declared_.type, constant.is_float);
    if (kind == ValueKind::kNeither) {
      return Error(absl::StrCat("of type .", Av(TypeName(declared_.type)), " cannot hold ",
                                constant.is_float ? "a floating-point number" : "an integer"));
    }
    const uint64_t bits = ElementBits(constant, kind);
    std::vector<uint8_t>& init = variable_->init;
    init.resize(static_cast<size_t>(position_ + bytes));
    for (int64_t i = 0; i < bytes; ++i) {
      init[static_cast<size_t>(position_ + i)] = static_cast<uint8_t>(bits >> (8 * i));
    }
    return absl::OkStatus();
  }

  // name, name+4, generic(name)+4.
  absl::Status Pointer() {
    if (TypeBytes(declared_.type) != 8 || declared_.type == Type::kF64) {
      return Error(absl::StrCat("of type .", Av(TypeName(declared_.type)),
                                " cannot hold an address; one takes .u64 or .b64"));
    }
    ASSAY_RETURN_IF_ERROR(reader_->Charge(1));
    Relocation relocation;
    relocation.offset = position_;
    relocation.generic = reader_->Is("generic") && reader_->PeekIs("(");
    if (relocation.generic) {
      reader_->Advance();
      reader_->Advance();
    }
    references_->push_back({reader_->token().text, reader_->line()});
    std::string_view symbol;
    ASSAY_RETURN_IF_ERROR(reader_->Identifier("a name", &symbol));
    relocation.symbol = std::string(symbol);
    ASSAY_RETURN_IF_ERROR(Addend(&relocation));
    if (relocation.generic) {
      ASSAY_RETURN_IF_ERROR(reader_->Expect(")"));
      ASSAY_RETURN_IF_ERROR(Addend(&relocation));
    }
    variable_->relocations.push_back(std::move(relocation));
    return absl::OkStatus();
  }

  absl::Status Addend(Relocation* relocation) {
    const bool has_addend = reader_->Accept("+") || reader_->Is("-");
    if (!has_addend) return absl::OkStatus();
    int64_t addend = 0;
    ASSAY_RETURN_IF_ERROR(
        ParseIntegerConstant(reader_, "an offset", -kOffsetMax, kOffsetMax, &addend));
    relocation->addend += addend;
    return absl::OkStatus();
  }

  absl::Status Error(std::string_view what) const {
    return reader_->Error(absl::StrCat("the initialiser of '", Av(name_), "' ", Av(what)));
  }
  absl::Status TooMany() const { return Error("has more elements than the array"); }

  static constexpr int64_t kOffsetMax = int64_t{1} << 40;

  Reader* reader_;
  const DeclaredType& declared_;
  Variable* variable_;
  std::vector<Reference>* references_;
  std::string_view name_;
  std::vector<int64_t> level_bytes_;
  int64_t row_bytes_ = 0;  // of an element of the outermost dimension, when that is left out
  int64_t position_ = 0;
};

}  // namespace

absl::Status ParseVariableTail(Reader* reader, const DeclaredType& declared,
                               const Declarator& declarator, int64_t bytes, Variable* variable,
                               std::vector<Reference>* references) {
  ASSAY_RETURN_IF_ERROR(reader->Charge(2));
  if (declared.type == Type::kPred) {
    return Reader::ErrorAt(declarator.line, "a variable cannot be a predicate");
  }
  variable->type = declared.type;
  variable->align = declared.align > 0 ? declared.align : declared.bytes();
  variable->bytes = declarator.is_unsized ? 0 : bytes;
  const bool has_initializer = reader->Accept("=");
  if (has_initializer) {
    const bool can_have = variable->space == Space::kGlobal || variable->space == Space::kConst;
    if (!can_have || variable->is_extern) {
      return reader->Error(absl::StrCat("'", Av(declarator.name),
                                        "' cannot have an initialiser: only .global and .const "
                                        "variables that are not .extern can"));
    }
    Initializer initializer(reader, declared, declarator, variable, references);
    ASSAY_RETURN_IF_ERROR(initializer.Parse());
    if (declarator.is_unsized) variable->bytes = initializer.unsized_bytes();
  } else if (declarator.is_unsized && !variable->is_extern) {
    return Reader::ErrorAt(declarator.line,
                           absl::StrCat("the size of '", Av(declarator.name),
                                        "' is left out: it needs an initialiser or .extern"));
  }
  return reader->ChargeBytes(variable->bytes);
}

}  // namespace assay::emulator
