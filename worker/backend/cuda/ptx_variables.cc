#include "worker/backend/cuda/ptx_variables.h"

#include "worker/backend/cuda/ptx_words.h"

namespace assay {
namespace {

bool IsLinkage(std::string_view word) {
  return word == ".visible" || word == ".extern" || word == ".weak" || word == ".common";
}

bool IsOpaque(std::string_view word) {
  return word == ".texref" || word == ".samplerref" || word == ".surfref";
}

// After a declaration's name: up to the comma or semicolon that ends its declarator, over array
// bounds and initialisers.
std::string_view SkipDeclarator(PtxWords* words) {
  int depth = 0;
  for (std::string_view word = words->Next(); !word.empty(); word = words->Next()) {
    if (word == "{" || word == "[" || word == "(") ++depth;
    if (word == "}" || word == "]" || word == ")") --depth;
    if (depth <= 0 && (word == "," || word == ";")) return word;
  }
  return {};
}

void SkipParentheses(PtxWords* words) {
  PtxWords ahead = *words;
  if (ahead.Next() != "(") return;
  words->Next();
  for (int depth = 1; depth > 0;) {
    const std::string_view word = words->Next();
    if (word.empty()) return;
    if (word == "(") ++depth;
    if (word == ")") --depth;
  }
}

// After `.global`.
void ScanDeclaration(PtxWords* words, PtxVariable variable, std::vector<PtxVariable>* out) {
  for (std::string_view word = words->Next(); !word.empty() && word != ";"; word = words->Next()) {
    if (IsOpaque(word)) {
      while (SkipDeclarator(words) == ",") {
      }
      return;
    }
    if (word == ".align") {
      words->Next();
    } else if (word == ".attribute") {
      SkipParentheses(words);
    } else if (word.front() != '.') {
      variable.name = std::string(word);
      out->push_back(variable);
      if (SkipDeclarator(words) != ",") return;
    }
  }
}

}  // namespace

std::vector<PtxVariable> ScanPtxVariables(std::string_view ptx) {
  std::vector<PtxVariable> variables;
  PtxWords words(ptx);
  int braces = 0;
  int parentheses = 0;  // of parameters, whose state spaces are no declarations
  bool has_linkage = false;
  for (std::string_view word = words.Next(); !word.empty(); word = words.Next()) {
    if (word == "{") ++braces;
    if (word == "}") --braces;
    if (word == "(") ++parentheses;
    if (word == ")") --parentheses;
    if (word == ".global" && parentheses == 0) {
      PtxVariable variable;
      variable.at = words.start();
      variable.has_linkage = has_linkage;
      variable.in_function = braces > 0;
      ScanDeclaration(&words, std::move(variable), &variables);
    }
    has_linkage = IsLinkage(word);
  }
  return variables;
}

std::string MakeVariablesVisible(std::string_view ptx, const std::vector<PtxVariable>& variables) {
  std::string text;
  size_t done = 0;
  for (const PtxVariable& variable : variables) {
    // Several names may share one declaration.
    if (variable.has_linkage || variable.in_function || variable.at < done) continue;
    text.append(ptx.substr(done, variable.at - done));
    text.append(".visible ");
    text.append(".global");
    done = variable.at + std::string_view(".global").size();
  }
  text.append(ptx.substr(done));
  return text;
}

}  // namespace assay
