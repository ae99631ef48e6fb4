#include "worker/builder/cuda_diagnostics.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/limits.h"
#include "base/strings.h"

namespace assay {
namespace {

constexpr std::string_view kCannotOpen = "cannot open source file \"";

std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines;
  for (const absl::string_view line : absl::StrSplit(Av(text), '\n')) lines.push_back(Sv(line));
  return lines;
}

std::optional<int> Number(std::string_view text) {
  int number = 0;
  if (!absl::SimpleAtoi(Av(text), &number)) return std::nullopt;
  return number;
}

// "error: ", "catastrophic error: ", "warning #177-D: ", "note: ".
std::optional<int> TakeSeverity(std::string_view* text) {
  constexpr std::pair<std::string_view, int> kNames[] = {{"catastrophic error", kSeverityError},
                                                         {"internal error", kSeverityError},
                                                         {"error", kSeverityError},
                                                         {"warning", kSeverityWarning},
                                                         {"remark", kSeverityNote},
                                                         {"note", kSeverityNote}};
  for (const auto& [name, severity] : kNames) {
    if (!text->starts_with(name)) continue;
    std::string_view rest = text->substr(name.size());
    if (rest.starts_with(" #")) rest = rest.substr(std::min(rest.find(':'), rest.size()));
    if (!rest.starts_with(": ")) return std::nullopt;
    *text = rest.substr(2);
    return severity;
  }
  return std::nullopt;
}

std::optional<BuildDiagnostic> ParseNvrtcLine(std::string_view line) {
  if (line.starts_with(' ')) return std::nullopt;  // an echo of the source
  // A source that breaks off; no file is named.
  constexpr std::string_view kAtEnd = "At end of source: ";
  if (line.starts_with(kAtEnd)) {
    line.remove_prefix(kAtEnd.size());
    const std::optional<int> severity = TakeSeverity(&line);
    if (!severity.has_value()) return std::nullopt;
    return MakeDiagnostic(*severity, "", 0, 0, absl::StrCat(Av(line), " at the end of the source"));
  }
  for (size_t open = line.find('('); open != line.npos; open = line.find('(', open + 1)) {
    const size_t close = line.find("): ", open);
    if (close == line.npos || open == 0) return std::nullopt;
    const std::optional<int> number = Number(line.substr(open + 1, close - open - 1));
    if (!number.has_value()) continue;
    std::string_view message = line.substr(close + 3);
    const std::optional<int> severity = TakeSeverity(&message);
    if (!severity.has_value()) return std::nullopt;
    return MakeDiagnostic(*severity, line.substr(0, open), *number, 0, message);
  }
  return std::nullopt;
}

// The path that a message could not open.
std::string_view MissingFile(std::string_view message) {
  if (!message.starts_with(kCannotOpen)) return {};
  message.remove_prefix(kCannotOpen.size());
  return message.substr(0, message.find('"'));
}

bool IsCompilerLimit(std::string_view message) {
  return message.starts_with("excessive recursion at instantiation of") ||
         (message.starts_with("#include file") && message.ends_with("includes itself")) ||
         message.find("excessive constexpr function call") != message.npos;
}

// Headers of host libraries by how their names begin; standard ones have no dot.
bool IsHostHeader(std::string_view name) {
  constexpr std::string_view kBeginnings[] = {
      "torch/", "ATen/",    "c10/",     "pybind11/", "Python.h", "cublas",    "cudnn",  "curand.h",
      "cufft",  "cusparse", "cusolver", "nccl",      "sys/",     "unistd.h",  "time.h", "pthread.h",
      "omp.h",  "signal.h", "opencv",   "Eigen/",    "gtest/",   "benchmark/"};
  return name.find('.') == name.npos ||
         std::any_of(std::begin(kBeginnings), std::end(kBeginnings),
                     [name](std::string_view beginning) { return name.starts_with(beginning); });
}

// The place of `word` in `text` where no name goes on before it, from `from` on.
size_t FindWord(std::string_view text, std::string_view word, size_t from = 0) {
  for (size_t at = text.find(word, from); at != text.npos; at = text.find(word, at + 1)) {
    const char before = at == 0 ? ' ' : text[at - 1];
    if (!absl::ascii_isalnum(static_cast<unsigned char>(before)) && before != '_') return at;
  }
  return text.npos;
}

// "cudaMalloc", "cudaStream_t": names of the runtime API, of which NVRTC knows few.
bool HasRuntimeName(std::string_view text) {
  constexpr std::string_view kPrefix = "cuda";
  for (size_t at = FindWord(text, kPrefix); at != text.npos; at = FindWord(text, kPrefix, at + 1)) {
    const std::string_view rest = text.substr(at + kPrefix.size());
    if (!rest.empty() && absl::ascii_isupper(static_cast<unsigned char>(rest[0]))) return true;
  }
  return false;
}

// Line `number`, from 1, without its line comment.
std::string_view SourceLine(std::string_view text, int number) {
  for (; number > 1 && !text.empty(); --number) {
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  }
  text = text.substr(0, text.find('\n'));
  return text.substr(0, text.find("//"));
}

// Whether an error comes of code that is meant for the host.
bool IsAboutHostCode(const BuildDiagnostic& diagnostic, const SourceFiles& files) {
  const std::string_view message = diagnostic.message;
  if (message.find("marked as a __host__ function") != message.npos ||
      message.starts_with("device-side kernel launch could not be processed") ||
      (message.starts_with("identifier \"") && HasRuntimeName(message))) {
    return true;
  }
  constexpr std::string_view kWords[] = {
      "torch::",        "at::",        "c10::",       "py::",      "PYBIND11_MODULE(",
      "TORCH_LIBRARY(", "thrust::",    "std::vector", "std::cout", "std::cerr",
      "std::string",    "std::chrono", "std::unique_"};
  for (const auto& [name, content] : files) {
    if (name != diagnostic.file) continue;
    const std::string_view line = SourceLine(content, diagnostic.line);
    return HasRuntimeName(line) || line.find("<<<") != line.npos ||
           std::any_of(std::begin(kWords), std::end(kWords),
                       [line](std::string_view word) { return FindWord(line, word) != line.npos; });
  }
  return false;
}

// The number before `unit`, as in "Used 40 registers, 16 bytes smem".
int64_t Before(std::string_view text, std::string_view unit) {
  const size_t at = text.find(unit);
  if (at == text.npos || at == 0) return 0;
  size_t begin = at;
  while (begin > 0 && absl::ascii_isdigit(static_cast<unsigned char>(text[begin - 1]))) --begin;
  int64_t value = 0;
  (void)absl::SimpleAtoi(Av(text.substr(begin, at - begin)), &value);
  return value;
}

}  // namespace

std::vector<BuildDiagnostic> ParseNvrtcDiagnostics(std::string_view log) {
  std::vector<BuildDiagnostic> all;
  const std::vector<std::string_view> lines = Lines(log);
  for (size_t i = 0; i < lines.size(); ++i) {
    std::optional<BuildDiagnostic> diagnostic = ParseNvrtcLine(lines[i]);
    if (!diagnostic.has_value()) continue;
    // The source line follows, two columns in, and below it a caret.
    if (i + 2 < lines.size() && lines[i + 1].starts_with("  ")) {
      const size_t caret = lines[i + 2].find_first_not_of(" \t");
      if (caret != std::string_view::npos && caret >= 2 && lines[i + 2].substr(caret) == "^") {
        diagnostic->column = static_cast<int>(caret) - 1;
      }
    }
    all.push_back(*std::move(diagnostic));
  }
  CapDiagnostics(&all);
  return all;
}

CompileFailure ClassifyNvrtcFailure(const std::vector<BuildDiagnostic>& diagnostics,
                                    const SourceFiles& files) {
  for (const BuildDiagnostic& diagnostic : diagnostics) {
    if (IsCompilerLimit(diagnostic.message)) return {"COMPILER_LIMIT", Placed(diagnostic)};
    if (diagnostic.severity != kSeverityError) continue;
    const std::string_view missing = MissingFile(diagnostic.message);
    if (missing.empty() && IsAboutHostCode(diagnostic, files)) {
      return {
          "COMPILE_FAILED",
          absl::StrCat(Placed(diagnostic),
                       "; a device-tier source holds device code only, and its launch plan says "
                       "what runs: remove host functions, launches, calls of the CUDA runtime "
                       "and bindings")};
    }
    if (missing.empty()) continue;
    if (LeavesSources(diagnostic.file, missing)) {
      return {"INCLUDE_FORBIDDEN",
              absl::StrCat(Placed(diagnostic),
                           "; a candidate sees its own files and the toolchain below /usr, and "
                           "nothing else of the machine")};
    }
    if (IsHostHeader(missing)) {
      return {"COMPILE_FAILED",
              absl::StrCat(Placed(diagnostic),
                           "; device code has no host library, only the headers that "
                           "worker/builder/README.md lists, and cuda/std/: remove the include, and "
                           "the host code that needs it")};
    }
  }
  return {"COMPILE_FAILED", ""};
}

std::vector<BuildDiagnostic> ParsePtxasDiagnostics(std::string_view log) {
  std::vector<BuildDiagnostic> all;
  for (std::string_view line : Lines(log)) {
    if (!line.starts_with("ptxas ")) continue;
    line.remove_prefix(6);
    int number = 0;
    std::string_view file;
    const size_t comma = line.find(", line ");
    const size_t semicolon = line.find("; ");
    if (comma < semicolon && semicolon != line.npos) {
      file = line.substr(line.rfind('/', comma) == line.npos ? 0 : line.rfind('/', comma) + 1);
      file = file.substr(0, file.find(','));
      number = Number(line.substr(comma + 7, semicolon - comma - 7)).value_or(0);
      line.remove_prefix(semicolon + 2);
    }
    const bool error = line.starts_with("error") || line.starts_with("fatal");
    if (!error && !line.starts_with("warning")) continue;
    const size_t colon = line.find(": ");
    if (colon == line.npos) continue;
    all.push_back(MakeDiagnostic(error ? kSeverityError : kSeverityWarning, file, number, 0,
                                 line.substr(colon + 2)));
  }
  CapDiagnostics(&all);
  return all;
}

std::vector<KernelResources> ParsePtxasReport(std::string_view report) {
  std::vector<KernelResources> all;
  bool in_entry = false;  // else the properties of a function that is called
  for (const std::string_view line : Lines(report)) {
    constexpr std::string_view kEntry = "Compiling entry function '";
    const size_t entry = line.find(kEntry);
    if (entry != line.npos) {
      if (all.size() >= limits::kKernelResourcesMax) break;
      const std::string_view name = line.substr(entry + kEntry.size());
      all.push_back({});
      all.back().kernel = std::string(name.substr(0, name.find('\'')));
      in_entry = true;
      continue;
    }
    if (all.empty()) continue;
    constexpr std::string_view kProperties = "Function properties for ";
    const size_t properties = line.find(kProperties);
    if (properties != line.npos) {
      in_entry = line.substr(properties + kProperties.size()) == all.back().kernel;
    } else if (in_entry && line.find(" bytes stack frame") != line.npos) {
      all.back().stack_bytes = Before(line, " bytes stack frame");
      all.back().spill_store_bytes = Before(line, " bytes spill stores");
      all.back().spill_load_bytes = Before(line, " bytes spill loads");
    } else if (line.find(": Used ") != line.npos) {
      all.back().registers = static_cast<int>(Before(line, " registers"));
      all.back().barriers = static_cast<int>(Before(line, " barriers"));
      all.back().static_shared_bytes = Before(line, " bytes smem");
    }
  }
  return all;
}

}  // namespace assay
