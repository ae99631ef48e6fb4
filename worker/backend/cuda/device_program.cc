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

std::optional<GuestEnd> DeviceProgram::LoadModule(const std::string& ptx) {
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
  GuestEnd end = Refused(GuestFault::LOAD_FAILED, loaded, "the PTX cannot be loaded");
  const std::string text(log.data());
  if (!text.empty() && end.message.find(text) == std::string::npos) {
    absl::StrAppend(&end.message, ": ", text);
  }
  return end;
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
      return Refused(got == cuda::CUDA_ERROR_NOT_SUPPORTED ? GuestFault::NOT_EMULATED
                                                           : GuestFault::LOAD_FAILED,
                     got, absl::StrCat("kernel ", launch.kernel()));
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
    if (set != cuda::CUDA_SUCCESS) {
      return Refused(GuestFault::PLAN_INVALID, set, "dynamic shared memory");
    }
  }
  return std::nullopt;
}

CUresult DeviceProgram::Launch(cuda::CUstream stream, std::span<const cuda::CUdeviceptr> tensors,
                               std::span<const cuda::CUdeviceptr> workspaces) const {
  for (const ResolvedLaunch& launch : plan_.launches) {
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
