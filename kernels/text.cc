#include "kernels/text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/strings.h"
#include "base/text.h"

namespace assay {
namespace {

// Sorted. What neither a C++20 parameter nor an expression's name can be; also the fixed-width type
// names, which a parameter would hide.
constexpr std::string_view kReserved[] = {
    "NULL",          "alignas",      "alignof",   "and",       "and_eq",    "asm",
    "auto",          "bitand",       "bitor",     "bool",      "break",     "case",
    "catch",         "ceil_div",     "char",      "char16_t",  "char32_t",  "char8_t",
    "class",         "co_await",     "co_return", "co_yield",  "compl",     "concept",
    "const",         "const_cast",   "consteval", "constexpr", "constinit", "continue",
    "decltype",      "default",      "delete",    "do",        "double",    "dynamic_cast",
    "else",          "enum",         "explicit",  "export",    "extern",    "false",
    "float",         "for",          "friend",    "goto",      "if",        "inline",
    "int",           "int32_t",      "int64_t",   "int8_t",    "linux",     "long",
    "main",          "max",          "min",       "mutable",   "namespace", "new",
    "noexcept",      "not",          "not_eq",    "nullptr",   "operator",  "or",
    "or_eq",         "private",      "protected", "public",    "register",  "reinterpret_cast",
    "requires",      "return",       "short",     "signed",    "sizeof",    "static",
    "static_assert", "static_cast",  "std",       "struct",    "switch",    "template",
    "this",          "thread_local", "throw",     "true",      "try",       "typedef",
    "typeid",        "typename",     "uint16_t",  "uint8_t",   "union",     "unix",
    "unsigned",      "using",        "virtual",   "void",      "volatile",  "wchar_t",
    "while",         "xor",          "xor_eq",
};
static_assert(std::ranges::is_sorted(kReserved));

bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsPlain(char c) {
  return IsLower(c) || IsUpper(c) || IsDigit(c) || c == '_' || c == '.' || c == '-';
}

absl::Status BadName(std::string_view what, std::string_view name, std::string_view rule) {
  return absl::InvalidArgumentError(absl::StrCat(Av(what), " ", Quoted(name), " ", Av(rule)));
}

constexpr size_t kWordBytes = 8;

// True when the eight bytes at `at` are ASCII without NUL.
bool IsPlainWord(std::string_view text, size_t at) {
  if (text.size() - at < kWordBytes) return false;
  uint64_t word;
  std::memcpy(&word, text.data() + at, kWordBytes);
  constexpr uint64_t kHigh = 0x8080808080808080;
  constexpr uint64_t kLow = 0x0101010101010101;
  // Without a high bit set, a byte borrows only when it is zero.
  return (word & kHigh) == 0 && ((word - kLow) & kHigh) == 0;
}

}  // namespace

std::string Quoted(std::string_view text) {
  const bool cut = text.size() > limits::kNameBytesMax;
  return absl::StrCat("'", absl::CHexEscape(Av(text.substr(0, limits::kNameBytesMax))),
                      cut ? "...'" : "'");
}

absl::Status CheckIdentifier(std::string_view name, std::string_view what) {
  if (name.empty()) return BadName(what, name, "is empty; give it a name");
  if (name.size() > limits::kNameBytesMax) {
    return BadName(what, name,
                   absl::StrCat("has ", name.size(), " bytes; at most ", limits::kNameBytesMax,
                                " are allowed"));
  }
  const bool characters =
      (IsLower(name[0]) || IsUpper(name[0])) && std::all_of(name.begin(), name.end(), [](char c) {
        return IsLower(c) || IsUpper(c) || IsDigit(c) || c == '_';
      });
  if (!characters || name.find("__") != std::string_view::npos) {
    return BadName(what, name, "is not a C identifier of [A-Za-z][A-Za-z0-9_]* without '__'");
  }
  if (std::ranges::binary_search(kReserved, name)) {
    return BadName(what, name, "is reserved by C++ or by expressions; choose another name");
  }
  return absl::OkStatus();
}

absl::Status CheckProblemId(std::string_view id) {
  const absl::Status status = CheckIdentifier(id, "problem name");
  if (!status.ok()) return status;
  if (std::any_of(id.begin(), id.end(), IsUpper)) {
    return BadName("problem name", id, "must be of [a-z][a-z0-9_]*; write it in lower case");
  }
  return absl::OkStatus();
}

bool IsPlainName(std::string_view name) {
  return !name.empty() && name.size() <= limits::kNameBytesMax &&
         std::all_of(name.begin(), name.end(), IsPlain);
}

bool IsContractName(std::string_view name) {
  return !name.empty() && name.size() <= limits::kNameBytesMax &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
         });
}

absl::Status CheckSourcePath(std::string_view path) {
  if (path.empty()) return absl::InvalidArgumentError("a file has an empty path");
  if (path.size() > limits::kPathBytesMax) {
    return BadName("path", path, absl::StrCat("is longer than ", limits::kPathBytesMax, " bytes"));
  }
  size_t start = 0;
  while (start <= path.size()) {
    const size_t end = std::min(path.find('/', start), path.size());
    const std::string_view part = path.substr(start, end - start);
    if (part.empty() || part[0] == '.' || !std::all_of(part.begin(), part.end(), IsPlain)) {
      return BadName("path", path,
                     "must be relative, of [A-Za-z0-9_.-] and '/', and no part may be empty or "
                     "begin with a dot");
    }
    start = end + 1;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ResolveInside(const std::string& folder, const std::string& path) {
  namespace fs = std::filesystem;
  const std::string shown = absl::StrCat(folder, "/", path);
  std::error_code error;
  const fs::path target = fs::canonical(shown, error);
  if (error) {
    return ErrorWithReason(absl::StatusCode::kNotFound, "PATH_NOT_FOUND",
                           absl::StrCat(shown, ": ", error.message()));
  }
  const fs::path base = fs::canonical(folder, error);
  const auto [base_end, target_at] =
      std::mismatch(base.begin(), base.end(), target.begin(), target.end());
  if (error || base_end != base.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat(shown, " is a link that leaves the folder; put the file itself there"));
  }
  return target.string();
}

size_t FindBadUtf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    if (IsPlainWord(text, at)) {
      at += kWordBytes;
      continue;
    }
    const size_t length = text[at] == '\0' ? 0 : Utf8Length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

int LineOf(std::string_view text, size_t at) {
  return 1 +
         static_cast<int>(std::count(text.begin(), text.begin() + std::min(at, text.size()), '\n'));
}

std::string_view FileExtension(std::string_view path) {
  const size_t slash = path.rfind('/');
  const std::string_view base = slash == std::string_view::npos ? path : path.substr(slash + 1);
  const size_t dot = base.rfind('.');
  return dot == std::string_view::npos || dot == 0 ? std::string_view() : base.substr(dot);
}

}  // namespace assay
