#include "worker/options.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/address.h"
#include "base/limits.h"
#include "base/status.h"
#include "worker/sandbox/required_walls.h"

namespace assay {
namespace {

bool IsWorkerName(const std::string& name) {
  if (name.empty() || name.size() > limits::kNameBytesMax) return false;
  for (const char c : name) {
    if (!absl::ascii_islower(static_cast<unsigned char>(c)) &&
        !absl::ascii_isdigit(static_cast<unsigned char>(c)) && c != '-') {
      return false;
    }
  }
  return true;
}

std::string DefaultName() {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  std::string name;
  for (const char* c = host; *c != '\0'; ++c) {
    const unsigned char byte = static_cast<unsigned char>(*c);
    name += absl::ascii_isalnum(byte) ? absl::ascii_tolower(byte) : '-';
  }
  if (name.size() > limits::kNameBytesMax) name.resize(limits::kNameBytesMax);
  return name.empty() ? "worker" : name;
}

std::string DefaultStateDirectory(const std::string& name) {
  const char* folder = std::getenv("TMPDIR");
  return absl::StrCat(folder != nullptr ? folder : "/tmp", "/assay-worker-", getuid(), "-", name);
}

absl::StatusOr<WorkerDevice> ParseDevice(const std::string& value) {
  WorkerDevice device;
  if (value == "cpu") return device;
  for (const int arch : {75, 80, 89, 90, 100, 120}) {
    if (value != absl::StrCat("emulated:sm_", arch)) continue;
    device.kind = WorkerDevice::Kind::kEmulated;
    device.arch = arch;
    return device;
  }
  device.kind = WorkerDevice::Kind::kCuda;
  constexpr absl::string_view kNumbered = "cuda:";
  if (value == "cuda") return device;
  if (absl::StartsWith(value, kNumbered) &&
      absl::SimpleAtoi(value.substr(kNumbered.size()), &device.ordinal) && device.ordinal >= 0 &&
      device.ordinal < static_cast<int>(limits::kDevicesPerWorkerMax)) {
    return device;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--device takes cpu, cuda, cuda:N or emulated:sm_75, 80, 89, 90, 100 or 120, not '", value,
      "'"));
}

absl::Status SetValue(const std::string& flag, const std::string& value, WorkerOptions* options) {
  if (flag == "--server") {
    ASSAY_RETURN_IF_ERROR(Annotate(CheckAddress(value), flag));
    options->server = value;
  } else if (flag == "--name") {
    if (!IsWorkerName(value)) {
      return absl::InvalidArgumentError(absl::StrCat("--name takes 1 to ", limits::kNameBytesMax,
                                                     " of [a-z0-9-], not '", value, "'"));
    }
    options->name = value;
  } else if (std::string* const file = flag == "--tls-ca"       ? &options->files.ca
                                       : flag == "--tls-cert"   ? &options->files.certificate
                                       : flag == "--tls-key"    ? &options->files.key
                                       : flag == "--token-file" ? &options->files.token
                                                                : nullptr;
             file != nullptr) {
    *file = value;
  } else if (flag == "--state-dir") {
    options->state_directory = value;
  } else if (flag == "--device") {
    ASSAY_ASSIGN_OR_RETURN(options->device, ParseDevice(value));
  } else if (flag == "--calibration") {
    if (value != "quick" && value != "full") {
      return absl::InvalidArgumentError(
          absl::StrCat("--calibration takes quick or full, not '", value, "'"));
    }
    options->quick_calibration = value == "quick";
  } else if (flag == "--require-wall") {
    if (std::find(AllWalls().begin(), AllWalls().end(), value) == AllWalls().end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--require-wall takes one of ", absl::StrJoin(AllWalls(), ", "), ", not '", value, "'"));
    }
    options->required_walls.push_back(value);
  } else if (flag == "--require-walls") {
    if (value != "all") {
      return absl::InvalidArgumentError(absl::StrCat("--require-walls takes all, not '", value,
                                                     "'; name one with "
                                                     "--require-wall"));
    }
    options->required_walls = AllWalls();
  } else {
    return absl::InvalidArgumentError(absl::StrCat("unknown flag ", flag));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<WorkerOptions> ParseWorkerOptions(const std::vector<std::string>& arguments) {
  WorkerOptions options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string flag = arguments[i];
    if (flag == "--help" || flag == "-h") {
      options.help = true;
      return options;
    }
    if (flag == "--calibrate" || flag == "--allow-unsandboxed") {
      (flag == "--calibrate" ? options.calibrate : options.allow_unsandboxed) = true;
      continue;
    }
    std::string value;
    const size_t equals = flag.find('=');
    if (equals != std::string::npos) {
      value = flag.substr(equals + 1);
      flag.resize(equals);
    } else if (i + 1 < arguments.size() && !absl::StartsWith(arguments[i + 1], "--")) {
      value = arguments[++i];
    } else {
      return absl::InvalidArgumentError(absl::StrCat(flag, " needs a value or is unknown"));
    }
    ASSAY_RETURN_IF_ERROR(SetValue(flag, value, &options));
  }
  if (options.server.empty()) return absl::InvalidArgumentError("--server is missing");
  if (options.allow_unsandboxed && !options.required_walls.empty()) {
    return absl::InvalidArgumentError("--allow-unsandboxed leaves no wall to require");
  }
  if (!options.allow_unsandboxed) {
    for (const std::string& wall : DefaultRequiredWalls(geteuid() == 0)) {
      options.required_walls.push_back(wall);
    }
    std::sort(options.required_walls.begin(), options.required_walls.end());
    options.required_walls.erase(
        std::unique(options.required_walls.begin(), options.required_walls.end()),
        options.required_walls.end());
  }
  if (options.name.empty()) options.name = DefaultName();
  if (options.state_directory.empty()) {
    options.state_directory = DefaultStateDirectory(options.name);
  }
  return options;
}

}  // namespace assay
