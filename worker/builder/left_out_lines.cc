#include "worker/builder/left_out_lines.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace assay {
namespace {

std::string_view TakeLine(std::string_view* text) {
  const std::string_view line = text->substr(0, text->find('\n'));
  text->remove_prefix(std::min(line.size() + 1, text->size()));
  return line;
}

bool IsNamePart(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The macro that `line` defines, whole; empty when it does not.
std::string_view DefinedMacro(std::string_view line) {
  constexpr std::string_view kDefine = "#define ";
  if (!line.starts_with(kDefine) || line.ends_with('\\')) return {};
  line.remove_prefix(kDefine.size());
  const auto end = std::find_if_not(line.begin(), line.end(), IsNamePart);
  return line.substr(0, static_cast<size_t>(end - line.begin()));
}

// Adds N and HEADER of every "(declared at line N of HEADER)".
void AddDeclared(std::string_view line, const HeaderTexts& headers, HeaderLines* lines) {
  constexpr std::string_view kDeclared = "(declared at line ";
  for (size_t at = line.find(kDeclared); at != line.npos; at = line.find(kDeclared, at + 1)) {
    const std::string_view rest = line.substr(at + kDeclared.size());
    int number = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error != std::errc()) continue;
    for (const auto& [name, text] : headers) {
      const std::string of = " of " + std::string(name) + ")";
      if (rest.substr(static_cast<size_t>(end - rest.data())).starts_with(of)) {
        lines->insert({name, number});
      }
    }
  }
}

void AddMacros(std::string_view source_line, const HeaderTexts& headers, HeaderLines* lines) {
  std::set<std::string_view> words;
  for (size_t begin = 0; begin < source_line.size(); ++begin) {
    size_t end = begin;
    while (end < source_line.size() && IsNamePart(source_line[end])) ++end;
    if (end > begin) words.insert(source_line.substr(begin, end - begin));
    begin = end;
  }
  for (const auto& [name, text] : headers) {
    std::string_view rest = text;
    for (int number = 1; !rest.empty(); ++number) {
      const std::string_view macro = DefinedMacro(TakeLine(&rest));
      if (!macro.empty() && words.count(macro) != 0) lines->insert({name, number});
    }
  }
}

}  // namespace

HeaderLines LinesInTheWay(std::string_view log, const HeaderTexts& headers) {
  HeaderLines lines;
  bool in_error = false;
  bool is_syntax = false;  // as where a macro's text stands in a declaration
  while (!log.empty()) {
    const std::string_view line = TakeLine(&log);
    // Further lines of a message, and the source line with its caret, are indented.
    if (!line.starts_with("  ")) {
      in_error = line.find(" error: ") != line.npos;
      is_syntax = line.find(" error: expected ") != line.npos;
    }
    if (!in_error) continue;
    AddDeclared(line, headers, &lines);
    if (is_syntax && line.starts_with("  ")) AddMacros(line, headers, &lines);
  }
  return lines;
}

std::string WithoutLines(std::string_view name, std::string_view text, const HeaderLines& lines) {
  std::string kept;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = TakeLine(&text);
    if (lines.count({std::string(name), number}) == 0) kept += line;
    kept += '\n';
  }
  return kept;
}

}  // namespace assay
