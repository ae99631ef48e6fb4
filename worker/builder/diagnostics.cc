#include "worker/builder/diagnostics.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/limits.h"
#include "base/strings.h"

namespace assay {
namespace {

constexpr size_t kMessageBytesMax = 2000;
constexpr size_t kFileBytesMax = 255;

constexpr std::string_view kMemoryTexts[] = {"Cannot allocate memory", "virtual memory exhausted",
                                             "out of memory allocating", "memory exhausted"};
constexpr std::string_view kMachineTexts[] = {"No space left on device",
                                              "Disk quota exceeded",
                                              "Input/output error",
                                              "Resource temporarily unavailable",
                                              "Cannot fork",
                                              "Too many open files",
                                              "Killed signal terminated",
                                              "cannot execute",
                                              "Read-only file system",
                                              "Killed"};

bool ContainsAny(std::string_view text, const std::string_view* begin,
                 const std::string_view* end) {
  return std::any_of(begin, end,
                     [&](std::string_view word) { return text.find(word) != text.npos; });
}

// Takes "<digits>:" off the front.
std::optional<int> TakeNumber(std::string_view* text) {
  const size_t colon = text->find(':');
  int number;
  if (colon == text->npos || colon == 0 || !absl::SimpleAtoi(Av(text->substr(0, colon)), &number)) {
    return std::nullopt;
  }
  text->remove_prefix(colon + 1);
  return number;
}

std::optional<int> TakeSeverity(std::string_view* text) {
  constexpr std::pair<std::string_view, int> kNames[] = {
      {"fatal error: ", kSeverityError},
      {"error: ", kSeverityError},
      {"Error: ", kSeverityError},
      {"Fatal error: ", kSeverityError},
      {"internal compiler error: ", kSeverityError},
      {"warning: ", kSeverityWarning},
      {"Warning: ", kSeverityWarning},
      {"note: ", kSeverityNote}};
  for (const auto& [name, severity] : kNames) {
    if (!text->starts_with(name)) continue;
    text->remove_prefix(name.size());
    return severity;
  }
  return std::nullopt;
}

BuildDiagnostic Make(int severity, std::string_view file, int line, int column,
                     std::string_view message) {
  BuildDiagnostic diagnostic;
  diagnostic.severity = severity;
  diagnostic.file = std::string(file.substr(0, kFileBytesMax));
  diagnostic.line = line;
  diagnostic.column = column;
  diagnostic.message = std::string(message.substr(0, kMessageBytesMax));
  return diagnostic;
}

// "file:line:column: severity: message" or "file:line: severity: message".
std::optional<BuildDiagnostic> ParseCompilerLine(std::string_view line) {
  const size_t colon = line.find(':');
  if (colon == line.npos || colon == 0) return std::nullopt;
  const std::string_view file = line.substr(0, colon);
  std::string_view rest = line.substr(colon + 1);
  const std::optional<int> number = TakeNumber(&rest);
  if (!number.has_value()) return std::nullopt;
  const int column = TakeNumber(&rest).value_or(0);
  if (!rest.starts_with(' ')) return std::nullopt;
  rest.remove_prefix(1);
  const std::optional<int> severity = TakeSeverity(&rest);
  if (!severity.has_value()) return std::nullopt;
  return Make(*severity, file, *number, column, rest);
}

// "file:(.text+0x1): undefined reference to `name'", "ld: file.o: multiple definition of `name'".
std::optional<BuildDiagnostic> ParseLinkerLine(std::string_view line) {
  for (const std::string_view what :
       {"undefined reference to ", "multiple definition of ", "relocation truncated"}) {
    const size_t at = line.find(what);
    if (at == line.npos) continue;
    const size_t section = line.find(":(");
    const std::string_view file =
        section != line.npos && section < at ? line.substr(0, section) : std::string_view();
    const size_t slash = file.rfind(": ");
    return Make(kSeverityError, slash == file.npos ? file : file.substr(slash + 2), 0, 0,
                line.substr(at));
  }
  return std::nullopt;
}

// The text between the first quotes, `name' or 'name'.
std::string_view Quoted(std::string_view text) {
  const size_t open = text.find_first_of("`'");
  if (open == text.npos) return {};
  const size_t close = text.find('\'', open + 1);
  if (close == text.npos) return {};
  return text.substr(open + 1, close - open - 1);
}

bool IsWordCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Whether `prelude` declares a function `name`: the word, followed by a parenthesis.
bool Declares(std::string_view prelude, std::string_view name) {
  if (name.empty()) return false;
  for (size_t at = prelude.find(name); at != prelude.npos; at = prelude.find(name, at + 1)) {
    const size_t end = at + name.size();
    if (at > 0 && IsWordCharacter(prelude[at - 1])) continue;
    if (end < prelude.size() && prelude[end] == '(') return true;
  }
  return false;
}

// The declared function in a quoted declaration such as "void f(const float*, long int)".
std::string_view FunctionName(std::string_view declaration) {
  const size_t parenthesis = declaration.find('(');
  if (parenthesis == declaration.npos) return {};
  size_t begin = parenthesis;
  while (begin > 0 && IsWordCharacter(declaration[begin - 1])) --begin;
  return declaration.substr(begin, parenthesis - begin);
}

}  // namespace

std::vector<BuildDiagnostic> ParseDiagnostics(std::string_view log) {
  std::vector<BuildDiagnostic> all;
  for (const absl::string_view part : absl::StrSplit(Av(log), '\n')) {
    const std::string_view line = Sv(part);
    std::optional<BuildDiagnostic> diagnostic = ParseCompilerLine(line);
    if (!diagnostic.has_value()) diagnostic = ParseLinkerLine(line);
    if (diagnostic.has_value()) all.push_back(*std::move(diagnostic));
  }
  if (all.size() > limits::kDiagnosticsMax) {
    std::stable_partition(all.begin(), all.end(), [](const BuildDiagnostic& diagnostic) {
      return diagnostic.severity == kSeverityError;
    });
    all.resize(limits::kDiagnosticsMax);
  }
  return all;
}

std::string ClassifyFailure(const std::vector<BuildDiagnostic>& diagnostics,
                            std::string_view prelude) {
  for (const BuildDiagnostic& diagnostic : diagnostics) {
    if (diagnostic.severity != kSeverityError) continue;
    const std::string_view message = diagnostic.message;
    const std::string_view quoted = Quoted(message);
    const bool conflict = message.starts_with("conflicting declaration of") ||
                          message.starts_with("ambiguating new declaration of") ||
                          message.find("was declared 'extern' and later 'static'") != message.npos;
    if (conflict && Declares(prelude, FunctionName(quoted))) return "WRONG_PROTOTYPE";
    if (message.starts_with("undefined reference to ") && Declares(prelude, quoted)) {
      return "ENTRY_NOT_FOUND";
    }
  }
  return "COMPILE_FAILED";
}

bool ExplainedBySources(const std::vector<BuildDiagnostic>& diagnostics) {
  return std::any_of(diagnostics.begin(), diagnostics.end(), [](const BuildDiagnostic& diagnostic) {
    return diagnostic.severity == kSeverityError;
  });
}

bool MentionsMachine(std::string_view log) {
  return MentionsMemory(log) ||
         ContainsAny(log, std::begin(kMachineTexts), std::end(kMachineTexts));
}

bool MentionsMemory(std::string_view log) {
  return ContainsAny(log, std::begin(kMemoryTexts), std::end(kMemoryTexts));
}

}  // namespace assay
