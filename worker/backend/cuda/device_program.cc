#include "worker/backend/cuda/device_program.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "assay/internal/v1/runner.pb.h"
#include "assay/v1/candidate.pb.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/strings.h"
#include "worker/backend/cuda/ptx_signature.h"

namespace assay {
namespace {

using cuda::CUresult;
using internal::v1::GuestFault;

constexpr int kSharedWithoutOptIn = 48 << 10;
constexpr size_t kLogBytes = 4096;  // of the driver's compiler

}  // namespace

absl::StatusOr<std::string> ReadArtifact(int fd) {
  std::string text;
  char buffer[64 << 10];
  for (off_t at = 0;;) {
    const ssize_t got = pread(fd, buffer, sizeof(buffer), at);
    if (got < 0) return absl::UnavailableError("the candidate's artifact cannot be read");
    if (got == 0) return text;
    text.append(buffer, static_cast<size_t>(got));
    at += got;
  }
}

GuestEnd MakeEnd(int kind, std::string message) {
  GuestEnd end;
  end.kind = kind;
  end.message = std::move(message);
  return end;
}

DeviceProgram::~DeviceProgram() {
  if (module_ != nullptr) (void)driver_.functions().cuModuleUnload(module_);
}

GuestEnd DeviceProgram::Refused(int kind, CUresult result, std::string_view what) const {
  const std::string why = explain_ ? explain_() : "";
  return MakeEnd(
      kind, absl::StrCat(Av(what), ": ", driver_.ErrorName(result), why.empty() ? "" : ": ", why));
}

absl::StatusOr<GuestEnd> DeviceProgram::EndOfNoMemory(GuestEnd refused) const {
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  ASSAY_RETURN_IF_ERROR(
      driver_.Check(driver_.functions().cuMemGetInfo(&free_bytes, &total_bytes), "cuMemGetInfo"));
  absl::StrAppend(&refused.message, "; the device has ", free_bytes >> 20, " of ",
                  total_bytes >> 20, " MiB free");
  // Any module whose variables are no larger than they may be fits into so much.
  if (free_bytes >= limits::kModuleVariableBytesMax) {
    absl::StrAppend(&refused.message, "; give large data to the kernel as a workspace");
    return refused;
  }
  return ErrorWithReason(absl::StatusCode::kUnavailable, "DEVICE_MEMORY_TOO_SMALL",
                         absl::StrCat(refused.message, "; see who uses it"));
}

absl::StatusOr<GuestEnd> DeviceProgram::EndOfLoad(CUresult result, const std::string& what,
                                                  const std::string& log) const {
  const auto refused = [&](int kind) {
    GuestEnd end = Refused(kind, result, what);
    if (end.message.find(log) == std::string::npos) absl::StrAppend(&end.message, ": ", log);
    return end;
  };
  switch (result) {
    case cuda::CUDA_ERROR_INVALID_IMAGE:
    case cuda::CUDA_ERROR_INVALID_PTX:
    case cuda::CUDA_ERROR_INVALID_SOURCE:
    case cuda::CUDA_ERROR_NO_BINARY_FOR_GPU:
    case cuda::CUDA_ERROR_NOT_FOUND:
    case cuda::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND:
    case cuda::CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC:
      return refused(GuestFault::LOAD_FAILED);
    case cuda::CUDA_ERROR_OUT_OF_MEMORY:
      return EndOfNoMemory(refused(GuestFault::MEMORY_LIMIT));
    default:
      break;
  }
  if (driver_.is_emulated()) return refused(GuestFault::NOT_EMULATED);
  GuestEnd end = refused(GuestFault::DRIVER_TOO_OLD);
  if (result == cuda::CUDA_ERROR_UNSUPPORTED_PTX_VERSION) {
    absl::StrAppend(&end.message,
                    "; the device's driver is older than the PTX: install a later one, or compile "
                    "with a CUDA toolkit that is no newer than it");
    return end;
  }
  if (result == cuda::CUDA_ERROR_JIT_COMPILER_NOT_FOUND) {
    absl::StrAppend(&end.message, "; ", kInstallJitCompiler);
    return end;
  }
  return ErrorWithReason(absl::StatusCode::kUnavailable, "DRIVER_FAILED", end.message);
}

absl::StatusOr<std::optional<GuestEnd>> DeviceProgram::LoadModule(const std::string& ptx) {
  const cuda::DriverFunctions& cu = driver_.functions();
  if (module_ != nullptr) (void)cu.cuModuleUnload(module_);
  module_ = nullptr;
  kernels_.clear();
  std::array<char, kLogBytes> log = {};
  cuda::CUjit_option options[] = {cuda::CU_JIT_ERROR_LOG_BUFFER,
                                  cuda::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log.data(), reinterpret_cast<void*>(log.size() - 1)};
  const CUresult loaded =
      cu.cuModuleLoadDataEx(&module_, ptx.c_str(), std::size(options), options, values);
  if (loaded == cuda::CUDA_SUCCESS) return std::nullopt;
  module_ = nullptr;
  return EndOfLoad(loaded, "the PTX cannot be loaded", log.data());
}

absl::StatusOr<std::optional<GuestEnd>> DeviceProgram::FindKernels(
    const v1::CandidateSpec& candidate, std::vector<KernelSignature>* signatures) {
  const cuda::DriverFunctions& cu = driver_.functions();
  for (const v1::Launch& launch : candidate.plan().launches()) {
    const auto known =
        std::find_if(signatures->begin(), signatures->end(),
                     [&](const KernelSignature& s) { return s.name == launch.kernel(); });
    if (known == signatures->end() || kernels_.count(launch.kernel()) != 0) continue;
    cuda::CUfunction function = nullptr;
    const CUresult got = cu.cuModuleGetFunction(&function, module_, launch.kernel().c_str());
    if (got != cuda::CUDA_SUCCESS) {
      return EndOfLoad(got, absl::StrCat("kernel ", launch.kernel()), "");
    }
    kernels_[launch.kernel()] = function;
    int bytes = 0;
    ASSAY_RETURN_IF_ERROR(driver_.Check(
        cu.cuFuncGetAttribute(&bytes, cuda::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function),
        "cuFuncGetAttribute"));
    known->static_shared_bytes = bytes;
  }
  return std::nullopt;
}

absl::StatusOr<std::optional<GuestEnd>> DeviceProgram::ResolvePlanOn(
    cuda::CUdevice device, const std::string& ptx, const v1::CandidateSpec& candidate,
    const ResolvedWorkload& workload, const ValueMap& configuration) {
  const cuda::DriverFunctions& cu = driver_.functions();
  std::vector<KernelSignature> signatures = ScanPtxKernels(ptx);
  ASSAY_ASSIGN_OR_RETURN(std::optional<GuestEnd> end, FindKernels(candidate, &signatures));
  if (end.has_value()) return end;
  int shared = 0;
  ASSAY_RETURN_IF_ERROR(driver_.Check(
      cu.cuDeviceGetAttribute(&shared, cuda::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                              device),
      "cuDeviceGetAttribute"));
  PlanLimits limits;
  limits.shared_bytes_max = shared;
  absl::StatusOr<ResolvedPlan> plan =
      ResolvePlan(candidate, workload, configuration, limits, signatures);
  if (!plan.ok()) {
    end = MakeEnd(GuestFault::PLAN_INVALID, std::string(plan.status().message()));
    end->check = GetReason(plan.status());
    return end;
  }
  plan_ = *std::move(plan);
  for (const ResolvedLaunch& launch : plan_.launches) {
    if (launch.shared_bytes <= kSharedWithoutOptIn) continue;
    const CUresult set = cu.cuFuncSetAttribute(
        kernels_[launch.kernel], cuda::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
        static_cast<int>(launch.shared_bytes));
    if (set == cuda::CUDA_ERROR_INVALID_VALUE) {
      return Refused(GuestFault::PLAN_INVALID, set, "dynamic shared memory");
    }
    ASSAY_RETURN_IF_ERROR(driver_.Check(set, "cuFuncSetAttribute"));
  }
  return std::nullopt;
}

CUresult DeviceProgram::Launch(cuda::CUstream stream, std::span<const cuda::CUdeviceptr> tensors,
                               std::span<const cuda::CUdeviceptr> workspaces, int left_out) const {
  for (size_t number = 0; number < plan_.launches.size(); ++number) {
    if (static_cast<int>(number) == left_out) continue;
    const ResolvedLaunch& launch = plan_.launches[number];
    std::vector<uint64_t> values;
    for (const PlanArgument& argument : launch.arguments) {
      const auto index = static_cast<size_t>(argument.index);
      switch (argument.kind) {
        case PlanArgument::Kind::kTensor:
          values.push_back(tensors[index]);
          break;
        case PlanArgument::Kind::kWorkspace:
          values.push_back(workspaces[index]);
          break;
        case PlanArgument::Kind::kInteger:
          values.push_back(argument.bits);
          break;
      }
    }
    std::vector<void*> pointers;
    for (uint64_t& value : values) pointers.push_back(&value);
    const CUresult launched = driver_.functions().cuLaunchKernel(
        kernels_.at(launch.kernel), launch.grid[0], launch.grid[1], launch.grid[2], launch.block[0],
        launch.block[1], launch.block[2], static_cast<unsigned int>(launch.shared_bytes), stream,
        pointers.data(), nullptr);
    if (launched != cuda::CUDA_SUCCESS) return launched;
  }
  return cuda::CUDA_SUCCESS;
}

}  // namespace assay
