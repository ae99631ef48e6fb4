#include "worker/builder/diagnostics.h"

#include <signal.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
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

std::vector<std::string_view> SplitLines(std::string_view text) {
  std::vector<std::string_view> lines;
  for (const absl::string_view line : absl::StrSplit(Av(text), '\n', absl::SkipEmpty())) {
    lines.push_back(Sv(line));
  }
  return lines;
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
  return MakeDiagnostic(*severity, file, *number, column, rest);
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
    return MakeDiagnostic(kSeverityError, slash == file.npos ? file : file.substr(slash + 2), 0, 0,
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

// The declaration of function `name` in `prelude`, with its semicolon: the word, followed by a
// parenthesis. Empty when there is none.
std::string_view Declaration(std::string_view prelude, std::string_view name) {
  if (name.empty()) return {};
  for (size_t at = prelude.find(name); at != prelude.npos; at = prelude.find(name, at + 1)) {
    const size_t end = at + name.size();
    if (at > 0 && IsWordCharacter(prelude[at - 1])) continue;
    if (end >= prelude.size() || prelude[end] != '(') continue;
    const size_t begin = prelude.find_last_of(";\n", at) + 1;  // 0 when there is none
    return prelude.substr(begin, prelude.find(';', end) - begin + 1);
  }
  return {};
}

// The declared function in a quoted declaration such as "void f(const float*, long int)".
std::string_view FunctionName(std::string_view declaration) {
  const size_t parenthesis = declaration.find('(');
  if (parenthesis == declaration.npos) return {};
  size_t begin = parenthesis;
  while (begin > 0 && IsWordCharacter(declaration[begin - 1])) --begin;
  return declaration.substr(begin, parenthesis - begin);
}

// What a message says of a file that is not there; empty when it speaks of something else.
std::string_view MissingFile(std::string_view message) {
  constexpr std::string_view kNotThere = ": No such file or directory";
  constexpr std::string_view kForReading = " for reading";
  // The preprocessor: "NAME: No such ..."; a directive's own text comes after its name.
  if (message.starts_with('#')) return {};
  // The assembler, for .incbin and .include.
  constexpr std::string_view kNotFound = "file not found: ";
  if (message.starts_with(kNotFound)) return message.substr(kNotFound.size());
  if (!message.ends_with(kNotThere)) return {};
  message.remove_suffix(kNotThere.size());
  constexpr std::string_view kCannotOpen = "can't open ";
  if (message.starts_with(kCannotOpen) && message.ends_with(kForReading)) {
    message.remove_prefix(kCannotOpen.size());
    message.remove_suffix(kForReading.size());
  }
  return message;
}

bool IsCompilerLimit(std::string_view message) {
  const bool by_language = message.starts_with("template instantiation depth exceeds ") ||
                           message.starts_with("#include nested depth ") ||
                           message.starts_with("'constexpr' ");
  return by_language && message.find(" exceeds ") != message.npos;
}

}  // namespace

BuildDiagnostic MakeDiagnostic(int severity, std::string_view file, int line, int column,
                               std::string_view message) {
  BuildDiagnostic diagnostic;
  diagnostic.severity = severity;
  diagnostic.file = std::string(file.substr(0, kFileBytesMax));
  diagnostic.line = line;
  diagnostic.column = column;
  diagnostic.message = std::string(message.substr(0, kMessageBytesMax));
  return diagnostic;
}

void CapDiagnostics(std::vector<BuildDiagnostic>* diagnostics) {
  if (diagnostics->size() <= limits::kDiagnosticsMax) return;
  std::stable_partition(
      diagnostics->begin(), diagnostics->end(),
      [](const BuildDiagnostic& diagnostic) { return diagnostic.severity == kSeverityError; });
  diagnostics->resize(limits::kDiagnosticsMax);
}

std::string Placed(const BuildDiagnostic& diagnostic) {
  std::string place = diagnostic.file;
  if (diagnostic.line > 0) {
    absl::StrAppend(&place, place.empty() ? "line " : ":", diagnostic.line);
    if (diagnostic.column > 0) absl::StrAppend(&place, ":", diagnostic.column);
  }
  return absl::StrCat(place, place.empty() ? "" : ": ", diagnostic.message);
}

bool LeavesSources(std::string_view file, std::string_view path) {
  if (path.starts_with('/')) return true;
  int depth = static_cast<int>(std::count(file.begin(), file.end(), '/'));
  for (const absl::string_view part : absl::StrSplit(Av(path), '/', absl::SkipEmpty())) {
    if (part == ".") continue;
    depth += part == ".." ? -1 : 1;
    if (depth < 0) return true;
  }
  return false;
}

std::vector<BuildDiagnostic> ParseDiagnostics(std::string_view log) {
  std::vector<BuildDiagnostic> all;
  for (const absl::string_view part : absl::StrSplit(Av(log), '\n')) {
    const std::string_view line = Sv(part);
    std::optional<BuildDiagnostic> diagnostic = ParseCompilerLine(line);
    if (!diagnostic.has_value()) diagnostic = ParseLinkerLine(line);
    if (diagnostic.has_value()) all.push_back(*std::move(diagnostic));
  }
  CapDiagnostics(&all);
  return all;
}

CompileFailure ClassifyFailure(const std::vector<BuildDiagnostic>& diagnostics,
                               std::string_view prelude) {
  for (const BuildDiagnostic& diagnostic : diagnostics) {
    if (diagnostic.severity != kSeverityError) continue;
    const std::string_view message = diagnostic.message;
    const std::string_view quoted = Quoted(message);
    const bool conflict = message.starts_with("conflicting declaration of") ||
                          message.starts_with("ambiguating new declaration of") ||
                          message.find("was declared 'extern' and later 'static'") != message.npos;
    if (conflict) {
      const std::string_view expected = Declaration(prelude, FunctionName(quoted));
      if (expected.empty()) continue;
      return {"WRONG_PROTOTYPE", absl::StrCat(Placed(diagnostic), "; expected: ", Av(expected))};
    }
    if (message.starts_with("undefined reference to ")) {
      const std::string_view expected = Declaration(prelude, quoted);
      if (expected.empty()) continue;
      return {"ENTRY_NOT_FOUND",
              absl::StrCat("no source defines ", Av(quoted),
                           " as the problem declares it; expected: ", Av(expected))};
    }
    if (message.starts_with("multiple definition of ") && quoted == "assay_invoke") {
      return {"RESERVED_NAME",
              "a source defines assay_invoke, which is the name of the function that calls the "
              "candidate; give yours another name"};
    }
    const std::string_view missing = MissingFile(message);
    if (!missing.empty() && LeavesSources(diagnostic.file, missing)) {
      return {"INCLUDE_FORBIDDEN",
              absl::StrCat(Placed(diagnostic),
                           "; a candidate sees its own files and the toolchain below /usr, and "
                           "nothing else of the machine")};
    }
    if (IsCompilerLimit(message)) return {"COMPILER_LIMIT", Placed(diagnostic)};
  }
  return {"COMPILE_FAILED", ""};
}

bool ExplainedBySources(const std::vector<BuildDiagnostic>& diagnostics) {
  return std::any_of(diagnostics.begin(), diagnostics.end(), [](const BuildDiagnostic& diagnostic) {
    return diagnostic.severity == kSeverityError;
  });
}

int SignalOfTool(std::string_view log) {
  // "g++: fatal error: Killed signal terminated program cc1plus", then advice; "collect2: fatal
  // error: ld terminated with signal 25 [File size limit exceeded]".
  constexpr std::string_view kAdvice[] = {"compilation terminated.", "Please submit a ", "See <"};
  const std::vector<std::string_view> lines = SplitLines(log);
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (std::any_of(std::begin(kAdvice), std::end(kAdvice),
                    [&](std::string_view advice) { return line->starts_with(advice); })) {
      continue;
    }
    const size_t colon = line->find(": ");
    const std::string_view driver = line->substr(0, colon);
    if (colon == line->npos || driver.find(' ') != driver.npos) return 0;
    std::string_view rest = line->substr(colon + 2);
    if (TakeSeverity(&rest) != kSeverityError) return 0;
    for (const int signal_number : {SIGKILL, SIGXCPU, SIGXFSZ}) {
      const std::string name = sigdescr_np(signal_number);
      if (rest.starts_with(name + " signal terminated program ") ||
          rest.ends_with(
              absl::StrCat(" terminated with signal ", signal_number, " [", name, "]"))) {
        return signal_number;
      }
    }
    return 0;
  }
  return 0;
}

bool MentionsMachine(std::string_view log) {
  return MentionsMemory(log) ||
         ContainsAny(log, std::begin(kMachineTexts), std::end(kMachineTexts));
}

bool MentionsMemory(std::string_view log) {
  return ContainsAny(log, std::begin(kMemoryTexts), std::end(kMemoryTexts));
}

}  // namespace assay
