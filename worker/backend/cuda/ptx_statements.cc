#include "worker/backend/cuda/ptx_statements.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>

namespace assay {
namespace {

int NumberOf(std::string_view word) { return std::atoi(std::string(word.substr(0, 10)).c_str()); }

// Of a type such as ".b8" or ".f32"; 0: the word is no type.
size_t ElementBytes(std::string_view word) {
  if (word.size() < 3 || std::string_view("busf").find(word[1]) == std::string_view::npos) return 0;
  const int bits = NumberOf(word.substr(2));
  return bits % 8 == 0 && bits <= 128 ? static_cast<size_t>(bits) / 8 : 0;
}

// Bits of a literal of PTX; 0 for what is none.
uint64_t BitsOf(std::string_view word) {
  const bool is_hex_float = word.size() > 2 && word[0] == '0' &&
                            std::string_view("fFdD").find(word[1]) != std::string_view::npos;
  const std::string text(is_hex_float ? word.substr(2) : word);
  return std::strtoull(text.c_str(), nullptr, is_hex_float ? 16 : 0);
}

}  // namespace

bool PtxStatement::Has(std::string_view part) const {
  for (size_t at = opcode.find(part); at != std::string::npos; at = opcode.find(part, at + 1)) {
    const size_t end = at + part.size();
    const bool begins = at == 0 || opcode[at - 1] == '.';
    if (begins && (end == opcode.size() || opcode[end] == '.')) return true;
  }
  return false;
}

std::string_view PtxStatements::Word() {
  const std::string_view word = words_.Next();
  const size_t start = std::min(words_.start(), text_.size());
  if (word.empty() || start < counted_) return word;
  ptx_line_ +=
      static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(counted_),
                                  text_.begin() + static_cast<std::ptrdiff_t>(start), '\n'));
  counted_ = start;
  return word;
}

std::string_view PtxStatements::Peek() const {
  PtxWords ahead = words_;
  return ahead.Next();
}

// After `open`.
void PtxStatements::SkipBalanced(std::string_view open, std::string_view close) {
  int depth = 1;
  for (std::string_view word = Word(); !word.empty(); word = Word()) {
    if (word == open) ++depth;
    if (word == close && --depth == 0) return;
  }
}

void PtxStatements::SkipStatement() {
  for (std::string_view word = Word(); !word.empty() && word != ";"; word = Word()) {
  }
}

void PtxStatements::ReadFile() {
  const int number = NumberOf(Word());
  const std::string_view name = Word();
  if (name.size() >= 2) files_[number] = name.substr(1, name.size() - 2);
}

void PtxStatements::ReadLocation() {
  const int file = NumberOf(Word());
  const int line = NumberOf(Word());
  Word();  // the column
  while (Peek() == ",") {
    Word();
    const int rest = Word() == "inlined_at" ? 3 : 1;
    for (int i = 0; i < rest; ++i) Word();
    if (Peek() != "+") continue;
    Word();
    Word();
  }
  // Code of no single line has line 0.
  if (line == 0) return;
  file_ = file;
  source_line_ = line;
}

void PtxStatements::ReadFunction(PtxStatement* statement) {
  statement->kind = PtxStatement::Kind::kFunction;
  std::string_view word = Word();
  while (word == "(" || (!word.empty() && word.front() == '.')) {
    if (word == "(") SkipBalanced("(", ")");
    word = Word();
  }
  statement->name = word;
  for (word = Word(); !word.empty() && word != "{" && word != ";"; word = Word()) {
    if (word == "(") SkipBalanced("(", ")");
  }
  statement->is_declaration = word != "{";
  if (statement->is_declaration) return;
  function_ = statement->name;
  depth_ = 1;
  file_ = 0;
  source_line_ = 0;
}

// After "=".
void PtxStatements::ReadValue(size_t element_bytes, std::string* data) {
  int depth = 0;
  bool is_negative = false;
  for (std::string_view word = Peek(); !word.empty() && word != ";"; word = Peek()) {
    if (depth == 0 && word == ",") return;  // the next variable
    Word();
    if (word == "{") ++depth;
    if (word == "}") --depth;
    const auto first = static_cast<unsigned char>(word.front());
    const bool is_digit = std::isdigit(first) != 0;
    const bool is_name = std::isalpha(first) != 0 || first == '_' || first == '$' || first == '%';
    if (is_digit || is_name) {
      uint64_t bits = is_digit ? BitsOf(word) : 0;
      if (is_negative) bits = uint64_t{0} - bits;
      for (size_t i = 0; i < element_bytes; ++i) {
        data->push_back(i < 8 ? static_cast<char>(bits >> (8 * i)) : '\0');
      }
      // generic(x), or a byte of an address: 0xff(x)
      if (Peek() == "(") {
        Word();
        SkipBalanced("(", ")");
      }
    }
    is_negative = word == "-";
  }
}

// After the state space.
void PtxStatements::ReadVariable(PtxStatement* statement) {
  statement->kind = PtxStatement::Kind::kVariable;
  statement->is_declaration = is_extern_;
  size_t element_bytes = 1;
  for (std::string_view word = Word(); !word.empty() && word != ";"; word = Word()) {
    if (word == ".align") {
      Word();
    } else if (word == "(") {
      SkipBalanced("(", ")");
    } else if (word == "[") {
      SkipBalanced("[", "]");
    } else if (word == "=") {
      ReadValue(element_bytes, &statement->data);
    } else if (word.front() == '.') {
      if (ElementBytes(word) > 0) element_bytes = ElementBytes(word);
    } else if (statement->name.empty()) {
      statement->name = word;
    }
  }
}

void PtxStatements::ReadInstruction(std::string_view word, PtxStatement* statement) {
  statement->kind = PtxStatement::Kind::kInstruction;
  statement->name = function_;
  statement->at = words_.start();
  statement->ptx_line = ptx_line_;
  statement->file = file_;
  statement->line = source_line_;
  if (word == "@") {  // a guard
    if (Word() == "!") Word();
    word = Word();
  }
  statement->opcode = std::string(word);
  for (word = Peek(); !word.empty() && (word.front() == '.' || word == ":"); word = Peek()) {
    statement->opcode.append(Word());
    // The second half of L2::evict_last.
    if (word == ":" && Peek() != ":") statement->opcode.append(Word());
  }
  for (word = Word(); !word.empty() && word != ";"; word = Word()) {
    statement->operands.push_back(word);
  }
}

bool PtxStatements::ReadModuleWord(std::string_view word, PtxStatement* statement) {
  statement->ptx_line = ptx_line_;
  if (word == ".entry" || word == ".func") {
    ReadFunction(statement);
  } else if (word == ".global" || word == ".const") {
    ReadVariable(statement);
  } else if (word == ".alias") {
    statement->kind = PtxStatement::Kind::kAlias;
    statement->name = Word();
    SkipStatement();
  } else {
    if (word == ".file") ReadFile();
    if (word == ".section") {
      while (!Peek().empty() && Word() != "{") {
      }
      SkipBalanced("{", "}");
    }
    is_extern_ = word == ".extern" || (is_extern_ && word != ";");
    return false;
  }
  is_extern_ = false;
  return true;
}

bool PtxStatements::ReadBodyWord(std::string_view word, PtxStatement* statement) {
  if (word == "{") ++depth_;
  if (word == "}") --depth_;
  if (word == "{" || word == "}" || word == ";") return false;
  if (word.front() == '.') {
    if (word == ".loc") {
      ReadLocation();
    } else if (word == ".file") {
      ReadFile();
    } else if (word == ".global" || word == ".const") {
      statement->ptx_line = ptx_line_;
      ReadVariable(statement);
      return true;
    } else {
      SkipStatement();
    }
    return false;
  }
  PtxWords ahead = words_;
  if (ahead.Next() == ":" && ahead.Next() != ":") {
    Word();
    return false;  // a label
  }
  ReadInstruction(word, statement);
  return true;
}

bool PtxStatements::Next(PtxStatement* statement) {
  for (std::string_view word = Word(); !word.empty(); word = Word()) {
    *statement = PtxStatement();
    const bool found = depth_ > 0 ? ReadBodyWord(word, statement) : ReadModuleWord(word, statement);
    if (found) return true;
  }
  return false;
}

}  // namespace assay
