#include "worker/agent/device_backend.h"

#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "assay/internal/v1/runner.pb.h"
#include "base/log.h"
#include "base/status.h"
#include "base/strings.h"
#include "worker/backend/cuda/device_slug.h"
#include "worker/backend/cuda/emulated_arch.h"

namespace assay {
namespace {

constexpr absl::Duration kQueryMax = absl::Seconds(60);

absl::StatusCode CodeByName(const std::string& name) {
  for (int code = 1; code <= 16; ++code) {
    if (absl::StatusCodeToString(static_cast<absl::StatusCode>(code)) == name) {
      return static_cast<absl::StatusCode>(code);
    }
  }
  return absl::StatusCode::kInternal;
}

absl::StatusOr<internal::v1::DeviceFacts> AskRunner(const std::string& driver, int ordinal,
                                                    RunnerSource* runners) {
  internal::v1::RunnerRequest request;
  request.mutable_device_query()->set_driver(driver);
  request.mutable_device_query()->set_ordinal(ordinal);
  request.set_runner_core(-1);
  request.set_guest_core(-1);
  ASSAY_ASSIGN_OR_RETURN(const std::unique_ptr<RunnerClient> runner, runners->Take());
  const RunnerHooks hooks{[] { return true; }, [](const internal::v1::RunnerProgress&) {}};
  ASSAY_ASSIGN_OR_RETURN(const std::unique_ptr<internal::v1::RunnerReport> report,
                         runner->Run(request, kQueryMax, hooks));
  if (report->has_error()) {
    return ErrorWithReason(CodeByName(report->error().code()), report->error().reason(),
                           report->error().message());
  }
  return report->device_facts();
}

absl::StatusOr<DeviceParts> MakeBuilders(const DevicePaths& paths, int compute_capability) {
  DeviceParts parts;
  CudaBuilderOptions builders;
  builders.cache_directory = paths.cache_directory;
  builders.helper = paths.nvrtc_helper;
  if (compute_capability > 0) builders.target = absl::StrCat("compute_", compute_capability);
  ASSAY_ASSIGN_OR_RETURN(parts.ptx, MakePtxBuilder(builders));
  absl::StatusOr<std::unique_ptr<Builder>> cuda = MakeCudaBuilder(builders);
  if (cuda.ok()) {
    parts.cuda = *std::move(cuda);
  } else {
    // PTX can be judged without it.
    parts.backend.cuda_missing = cuda.status();
    Log(LogLevel::kWarning, "no_cuda_builder", {{"message", std::string(cuda.status().message())}});
  }
  parts.backend.ptx = parts.ptx.get();
  parts.backend.cuda = parts.cuda.get();
  return parts;
}

}  // namespace

std::string CudaDeviceClass(const internal::v1::DeviceFacts& facts) {
  return absl::StrCat("cuda-", DeviceSlug(facts.name()), "-sm_", facts.compute_capability());
}

absl::Status CheckDriverReads(const std::string& compiler, int driver_version) {
  const std::vector<std::string> words =
      absl::StrSplit(compiler, absl::ByAnyChar(" ."), absl::SkipEmpty());
  int major = 0;
  int minor = 0;
  if (words.size() < 3 || !absl::SimpleAtoi(words[1], &major) ||
      !absl::SimpleAtoi(words[2], &minor)) {
    return absl::InternalError(absl::StrCat("a compiler without a version: ", compiler));
  }
  if (1000 * major + 10 * minor <= driver_version) return absl::OkStatus();
  return ErrorWithReason(
      absl::StatusCode::kUnavailable, "DRIVER_TOO_OLD",
      absl::StrCat(compiler, " writes PTX that the device's driver, of CUDA ",
                   driver_version / 1000, ".", driver_version % 1000 / 10,
                   ", does not know; update the driver, or set ASSAY_CUDA_ROOT to a toolkit that "
                   "is no newer"));
}

absl::StatusOr<DeviceParts> MakeEmulatedDevice(int arch, const DevicePaths& paths) {
  ASSAY_ASSIGN_OR_RETURN(DeviceParts parts, MakeBuilders(paths, 0));
  parts.backend.driver = paths.emulated_driver;
  parts.backend.arch = arch;
  parts.backend.device_class = absl::StrCat("emulated:sm_", arch);
  parts.backend.model = absl::StrCat("emulated sm_", arch);
  parts.backend.caveats = {"EMULATED"};
  return parts;
}

absl::StatusOr<DeviceParts> MakeCudaDevice(int ordinal, const DevicePaths& paths,
                                           RunnerSource* runners) {
  ASSAY_ASSIGN_OR_RETURN(const internal::v1::DeviceFacts facts,
                         AskRunner(paths.cuda_driver, ordinal, runners));
  ASSAY_ASSIGN_OR_RETURN(DeviceParts parts, MakeBuilders(paths, facts.compute_capability()));
  DeviceBackend& backend = parts.backend;
  if (parts.cuda != nullptr) {
    backend.cuda_missing = CheckDriverReads(parts.cuda->compiler(), facts.driver_version());
    if (!backend.cuda_missing.ok()) {
      Log(LogLevel::kWarning, "no_cuda_builder",
          {{"message", std::string(backend.cuda_missing.message())}});
      parts.cuda.reset();
      backend.cuda = nullptr;
    }
  }
  backend.driver = paths.cuda_driver;
  backend.is_emulated = false;
  backend.arch = EmulatedArchFor(facts.compute_capability());
  backend.ordinal = ordinal;
  backend.preflight_driver = paths.emulated_driver;
  backend.device_class = CudaDeviceClass(facts);
  backend.model = facts.name();
  backend.instruction_set =
      absl::StrCat("sm_", facts.compute_capability(), " CUDA ", facts.driver_version() / 1000, ".",
                   facts.driver_version() % 1000 / 10);
  if (facts.has_watchdog()) backend.caveats.push_back("DISPLAY_ATTACHED");
  parts.multiprocessor_count = facts.multiprocessor_count();
  parts.uuid = facts.uuid();
  parts.driver_version = facts.driver_version();
  Log(LogLevel::kInfo, "cuda_device",
      {{"name", facts.name()},
       {"uuid", facts.uuid()},
       {"memory_mib", absl::StrCat(facts.memory_bytes() >> 20)},
       {"l2_kib", absl::StrCat(facts.l2_bytes() >> 10)},
       {"multiprocessors", absl::StrCat(facts.multiprocessor_count())},
       {"sm_clock_mhz", absl::StrCat(facts.sm_clock_mhz())},
       {"memory_clock_mhz", absl::StrCat(facts.memory_clock_mhz())},
       {"driver", backend.instruction_set}});
  return parts;
}

}  // namespace assay
