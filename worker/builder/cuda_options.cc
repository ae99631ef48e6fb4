#include "worker/builder/cuda_options.h"

#include <algorithm>

#include "worker/builder/compile_options.h"

namespace assay {
namespace {

constexpr size_t kOptionBytesMax = 128;

// nvcc's options for host code, optimisation and debug information, which change nothing here.
constexpr std::string_view kDropped[] = {"O0",
                                         "O1",
                                         "O2",
                                         "O3",
                                         "lineinfo",
                                         "generate-line-info",
                                         "expt-relaxed-constexpr",
                                         "expt-extended-lambda",
                                         "extended-lambda"};
constexpr std::string_view kFlags[] = {"use_fast_math", "extra-device-vectorization", "restrict",
                                       "disable-warnings"};
constexpr std::string_view kSwitches[] = {"fmad", "ftz", "prec-div", "prec-sqrt"};
constexpr std::string_view kStandards[] = {"c++14", "c++17", "c++20"};

template <size_t count>
bool Contains(const std::string_view (&list)[count], std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

bool IsSmallNumber(std::string_view text) {
  return !text.empty() && text.size() <= 3 && text[0] != '0' &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// NAME or NAME=VALUE, where the value is one word of plain characters.
bool TakeDefine(std::string_view define, CudaOptions* options) {
  const size_t equals = define.find('=');
  if (!IsMacroNameAllowed(define.substr(0, equals))) return false;
  const std::string_view value = equals == define.npos ? "" : define.substr(equals + 1);
  constexpr std::string_view kPlain = "_.+-*/%()<>";
  const bool plain = std::all_of(value.begin(), value.end(), [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           kPlain.find(c) != kPlain.npos;
  });
  if (!plain) return false;
  options->compiler.push_back("-D" + std::string(define));
  options->has_defines = true;
  return true;
}

}  // namespace

bool TakeCudaOption(std::string_view option, CudaOptions* options) {
  if (option.size() < 2 || option.size() > kOptionBytesMax || option[0] != '-') return false;
  if (option.starts_with("-D")) return TakeDefine(option.substr(2), options);
  std::string_view name = option.substr(option.starts_with("--") ? 2 : 1);
  if (name == "w") name = "disable-warnings";
  if (Contains(kDropped, name)) return true;
  if (Contains(kFlags, name)) {
    options->compiler.push_back("--" + std::string(name));
    return true;
  }
  const size_t equals = name.find('=');
  if (equals == name.npos) return false;
  const std::string_view value = name.substr(equals + 1);
  name = name.substr(0, equals);
  if (name == "std" && Contains(kStandards, value)) {
    options->standard = value;
    return true;
  }
  const bool allowed = (Contains(kSwitches, name) && (value == "true" || value == "false")) ||
                       (name == "maxrregcount" && IsSmallNumber(value));
  if (allowed) options->compiler.push_back("--" + std::string(name) + "=" + std::string(value));
  return allowed;
}

}  // namespace assay
