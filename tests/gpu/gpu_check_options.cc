#include "tests/gpu/gpu_check.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"

namespace assay {
namespace {

absl::Status SetSeconds(const std::string& value, absl::Duration* to) {
  int seconds = 0;
  if (!absl::SimpleAtoi(value, &seconds) || seconds < 0 || seconds > 3600) {
    return absl::InvalidArgumentError(absl::StrCat("'", value, "' is no number of seconds"));
  }
  *to = absl::Seconds(seconds);
  return absl::OkStatus();
}

absl::Status SetValue(const std::string& flag, const std::string& value, GpuCheckOptions* options) {
  const struct {
    const char* flag;
    std::string* to;
  } texts[] = {{"--driver", &options->driver},     {"--emulator", &options->emulator},
               {"--problems", &options->problems}, {"--ptx", &options->ptx_directory},
               {"--out", &options->out_directory}, {"--results", &options->results_directory}};
  for (const auto& text : texts) {
    if (flag != text.flag) continue;
    *text.to = value;
    return absl::OkStatus();
  }
  const struct {
    const char* flag;
    absl::Duration* to;
  } durations[] = {{"--ceiling-seconds", &options->ceiling_time},
                   {"--check-seconds", &options->check_time},
                   {"--time-seconds", &options->run_time}};
  for (const auto& duration : durations) {
    if (flag == duration.flag) return Annotate(SetSeconds(value, duration.to), flag);
  }
  if (flag == "--seed") {
    if (absl::SimpleAtoi(value, &options->seed)) return absl::OkStatus();
  } else if (flag == "--compile") {
    if (absl::StartsWith(value, "sm_") &&
        absl::SimpleAtoi(absl::StripPrefix(value, "sm_"), &options->compile_arch) &&
        options->compile_arch > 0) {
      return absl::OkStatus();
    }
  } else {
    return absl::InvalidArgumentError(absl::StrCat("unknown option ", flag));
  }
  return absl::InvalidArgumentError(absl::StrCat(flag, " does not take '", value, "'"));
}

}  // namespace

absl::StatusOr<GpuCheckOptions> ParseGpuCheckArguments(const std::vector<std::string>& arguments,
                                                       const std::string& binaries) {
  GpuCheckOptions options;
  options.emulator = binaries + "/libassay_emulated_cuda.so";
  options.helper = binaries + "/assay-nvrtc";
  options.ptx_directory = binaries + "/../gpu_check_ptx";
  options.problems = "kernels/problems";
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!absl::StartsWith(arguments[i], "--")) {
      options.candidates.push_back(arguments[i]);
      continue;
    }
    if (i + 1 == arguments.size()) {
      return absl::InvalidArgumentError(absl::StrCat(arguments[i], " needs a value"));
    }
    ASSAY_RETURN_IF_ERROR(SetValue(arguments[i], arguments[i + 1], &options));
    ++i;
  }
  return options;
}

}  // namespace assay
