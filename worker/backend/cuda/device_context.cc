#include "worker/backend/cuda/device_context.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "worker/backend/cuda/helper_kernels.h"

namespace assay {
namespace {

using cuda::CUresult;

// Looks of the gate at memory of the host, about a microsecond each: seconds.
constexpr uint32_t kGateLooks = 4'000'000;
// Whole pages of host and device: kernels reach no byte of them that is not written anew.
constexpr size_t kGateBytes = 4096;
constexpr size_t kFlushBytesUnit = size_t{2} << 20;
constexpr unsigned int kHelperThreads = 256;
constexpr unsigned int kSharedThreads = 1024;
constexpr unsigned int kBlocksPerMultiprocessor = 8;
constexpr int kPollsPerClockRead = 16;
constexpr int64_t kYieldAfterNs = 1'000'000;

// CLOCK_MONOTONIC_RAW is not slewed.
int64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceContext>> DeviceContext::Make(const CudaDriver* driver,
                                                                   int ordinal) {
  std::unique_ptr<DeviceContext> context(new DeviceContext(driver));
  ASSAY_RETURN_IF_ERROR(context->Open(ordinal));
  return context;
}

DeviceContext::~DeviceContext() {
  if (is_lost_ || context_ == nullptr) return;
  // Takes stream, events, modules and memory along.
  (void)cu_.cuCtxDestroy(context_);
}

absl::StatusOr<int> DeviceContext::Attribute(cuda::CUdevice_attribute attribute) const {
  int value = 0;
  ASSAY_RETURN_IF_ERROR(
      driver_.Check(cu_.cuDeviceGetAttribute(&value, attribute, device_), "cuDeviceGetAttribute"));
  return value;
}

absl::Status DeviceContext::Open(int ordinal) {
  ASSAY_ASSIGN_OR_RETURN(device_, driver_.FindDevice(ordinal));
  ASSAY_ASSIGN_OR_RETURN(const int major,
                         Attribute(cuda::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  ASSAY_ASSIGN_OR_RETURN(const int minor,
                         Attribute(cuda::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  if (10 * major + minor < kHelperComputeCapability) {
    return ErrorWithReason(
        absl::StatusCode::kUnavailable, "DEVICE_TOO_OLD",
        absl::StrCat("CUDA device ", ordinal, " has compute capability ", major, ".", minor,
                     "; one of 7.5 or later is needed, or the emulated device"));
  }
  ASSAY_ASSIGN_OR_RETURN(const int multiprocessors,
                         Attribute(cuda::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  multiprocessors_ = static_cast<uint32_t>(std::max(1, multiprocessors));
  ASSAY_ASSIGN_OR_RETURN(const int shared,
                         Attribute(cuda::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
  shared_bytes_ = static_cast<uint32_t>(shared) & ~uint32_t{3};
  ASSAY_ASSIGN_OR_RETURN(const int persisting,
                         Attribute(cuda::CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE));
  has_persisting_cache_ = persisting > 0;
  // The host spins while it waits: a thread that sleeps would add its wake-up to the wall time.
  const CUresult made = cu_.cuCtxCreate(&context_, cuda::CU_CTX_SCHED_SPIN, device_);
  if (made != cuda::CUDA_SUCCESS) {
    return ErrorWithReason(
        absl::StatusCode::kUnavailable, "DRIVER_FAILED",
        absl::StrCat("no context on CUDA device ", ordinal, ": ", driver_.ErrorName(made),
                     "; see who uses it with nvidia-smi, and its compute mode"));
  }
  ASSAY_RETURN_IF_ERROR(
      driver_.Check(cu_.cuStreamCreate(&stream_, cuda::CU_STREAM_NON_BLOCKING), "cuStreamCreate"));
  for (cuda::CUevent* event : {&begin_, &end_}) {
    ASSAY_RETURN_IF_ERROR(
        driver_.Check(cu_.cuEventCreate(event, cuda::CU_EVENT_DEFAULT), "cuEventCreate"));
  }
  ASSAY_RETURN_IF_ERROR(LoadHelpers());
  ASSAY_RETURN_IF_ERROR(MakeFlushBuffer());
  return LaunchHelpersOnce();
}

absl::Status DeviceContext::LoadHelpers() {
  const CUresult loaded = cu_.cuModuleLoadData(&helpers_, kHelperKernels);
  if (loaded != cuda::CUDA_SUCCESS) {
    return ErrorWithReason(absl::StatusCode::kUnavailable, "DRIVER_FAILED",
                           absl::StrCat("the CUDA driver does not load the runner's own kernels: ",
                                        driver_.ErrorName(loaded), "; ",
                                        loaded == cuda::CUDA_ERROR_JIT_COMPILER_NOT_FOUND
                                            ? kInstallJitCompiler
                                            : "see what nvidia-smi says, and the kernel's log"));
  }
  const struct {
    const char* name;
    cuda::CUfunction* function;
  } kernels[] = {{"assay_gate", &gate_kernel_},
                 {"assay_empty", &empty_kernel_},
                 {"assay_checksum", &checksum_kernel_},
                 {"assay_fill_shared", &fill_shared_kernel_}};
  for (const auto& kernel : kernels) {
    ASSAY_RETURN_IF_ERROR(driver_.Check(
        cu_.cuModuleGetFunction(kernel.function, helpers_, kernel.name), kernel.name));
  }
  ASSAY_RETURN_IF_ERROR(
      driver_.Check(cu_.cuFuncSetAttribute(fill_shared_kernel_,
                                           cuda::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                           static_cast<int>(shared_bytes_)),
                    "the runner's own use of shared memory"));
  void* host = nullptr;
  ASSAY_RETURN_IF_ERROR(driver_.Check(
      cu_.cuMemHostAlloc(&host, kGateBytes,
                         cuda::CU_MEMHOSTALLOC_PORTABLE | cuda::CU_MEMHOSTALLOC_DEVICEMAP),
      "cuMemHostAlloc"));
  gate_ = static_cast<uint32_t*>(host);
  return absl::OkStatus();
}

absl::Status DeviceContext::LaunchHelpersOnce() {
  ASSAY_RETURN_IF_ERROR(driver_.Check(CloseGate(), "assay_gate"));
  std::atomic_ref<uint32_t>(gate_[0]).store(1);
  ASSAY_RETURN_IF_ERROR(driver_.Check(
      cu_.cuLaunchKernel(empty_kernel_, 1, 1, 1, 1, 1, 1, 0, stream_, nullptr, nullptr),
      "assay_empty"));
  ASSAY_RETURN_IF_ERROR(FlushCache());
  ASSAY_RETURN_IF_ERROR(FillShared(0));
  return Checksum(flush_, sizeof(uint64_t)).status();
}

absl::Status DeviceContext::MakeFlushBuffer() {
  ASSAY_ASSIGN_OR_RETURN(const int l2_bytes, Attribute(cuda::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
  const size_t l2_twice = 2 * static_cast<size_t>(std::max(1, l2_bytes));
  flush_bytes_ = (l2_twice + kFlushBytesUnit - 1) / kFlushBytesUnit * kFlushBytesUnit;
  const CUresult got = cu_.cuMemAlloc(&flush_, flush_bytes_);
  if (got == cuda::CUDA_SUCCESS) return absl::OkStatus();
  return ErrorWithReason(absl::StatusCode::kUnavailable, "DEVICE_MEMORY_TOO_SMALL",
                         absl::StrCat("the device has no ", flush_bytes_ >> 20,
                                      " MiB left to flush its cache with; see who uses it"));
}

absl::Status DeviceContext::Upload(cuda::CUdeviceptr to, std::span<const std::byte> from) {
  if (from.empty()) return absl::OkStatus();
  return driver_.Check(cu_.cuMemcpyHtoDAsync(to, from.data(), from.size(), stream_),
                       "cuMemcpyHtoDAsync");
}

absl::Status DeviceContext::Fill(cuda::CUdeviceptr to, unsigned char value, size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  return driver_.Check(cu_.cuMemsetD8Async(to, value, bytes, stream_), "cuMemsetD8Async");
}

absl::Status DeviceContext::Download(std::span<std::byte> to, cuda::CUdeviceptr from) {
  if (to.empty()) return absl::OkStatus();
  ASSAY_RETURN_IF_ERROR(driver_.Check(cu_.cuMemcpyDtoHAsync(to.data(), from, to.size(), stream_),
                                      "cuMemcpyDtoHAsync"));
  return Finish();
}

absl::Status DeviceContext::Finish() {
  return driver_.Check(cu_.cuStreamSynchronize(stream_), "cuStreamSynchronize");
}

absl::StatusOr<uint64_t> DeviceContext::Checksum(cuda::CUdeviceptr data, size_t bytes) {
  uint64_t sum = 0;
  if (bytes == 0) return sum;
  ASSAY_RETURN_IF_ERROR(Fill(flush_, 0, sizeof(sum)));
  uint64_t count = (bytes + 3) / 4;
  void* arguments[] = {&data, &count, &flush_};
  const uint64_t blocks = std::min<uint64_t>((count + kHelperThreads - 1) / kHelperThreads,
                                             uint64_t{kBlocksPerMultiprocessor} * multiprocessors_);
  ASSAY_RETURN_IF_ERROR(
      driver_.Check(cu_.cuLaunchKernel(checksum_kernel_, static_cast<unsigned int>(blocks), 1, 1,
                                       kHelperThreads, 1, 1, 0, stream_, arguments, nullptr),
                    "assay_checksum"));
  ASSAY_RETURN_IF_ERROR(Download(std::as_writable_bytes(std::span(&sum, 1)), flush_));
  return sum;
}

absl::Status DeviceContext::FillShared(uint32_t value) {
  uint32_t count = shared_bytes_ / 4;
  void* arguments[] = {&count, &value};
  // A block takes a whole multiprocessor; twice so many leave none out.
  return driver_.Check(
      cu_.cuLaunchKernel(fill_shared_kernel_, 2 * multiprocessors_, 1, 1, kSharedThreads, 1, 1,
                         shared_bytes_, stream_, arguments, nullptr),
      "assay_fill_shared");
}

absl::Status DeviceContext::ResetPersistingCache() {
  if (!has_persisting_cache_) return absl::OkStatus();
  const CUresult reset = cu_.cuCtxResetPersistingL2Cache();
  if (reset == cuda::CUDA_ERROR_NOT_SUPPORTED) return absl::OkStatus();
  return driver_.Check(reset, "cuCtxResetPersistingL2Cache");
}

absl::Status DeviceContext::FlushCache() {
  // A gate that was opened may not have looked yet.
  ASSAY_RETURN_IF_ERROR(Finish());
  std::memset(gate_, 0, kGateBytes);
  flush_value_ = std::max<uint32_t>(1, flush_value_ + 0x9e3779b1u);
  return driver_.Check(
      cu_.cuMemsetD32Async(flush_, flush_value_, flush_bytes_ / sizeof(uint32_t), stream_),
      "cuMemsetD32Async");
}

CUresult DeviceContext::CloseGate() {
  std::atomic_ref<uint32_t>(gate_[0]).store(0);
  std::atomic_ref<uint32_t>(gate_[1]).store(0);
  uint64_t words = reinterpret_cast<uintptr_t>(gate_);  // addresses are the same on both sides
  uint32_t looks = kGateLooks;
  void* arguments[] = {&words, &looks};
  return cu_.cuLaunchKernel(gate_kernel_, 1, 1, 1, 1, 1, 1, 0, stream_, arguments, nullptr);
}

bool DeviceContext::WaitForEnd(absl::Duration timeout, CUresult* result) {
  const int64_t start_ns = NowNs();
  const int64_t limit_ns = absl::ToInt64Nanoseconds(timeout);
  while (true) {
    for (int poll = 0; poll < kPollsPerClockRead; ++poll) {
      *result = cu_.cuEventQuery(end_);
      if (*result != cuda::CUDA_ERROR_NOT_READY) return true;
    }
    const int64_t waited_ns = NowNs() - start_ns;
    if (waited_ns > limit_ns) return false;
    if (waited_ns > kYieldAfterNs) sched_yield();
  }
}

absl::StatusOr<DeviceRun> DeviceContext::Run(const std::function<CUresult(cuda::CUstream)>& launch,
                                             bool gate, absl::Duration timeout) {
  ASSAY_RETURN_IF_ERROR(Finish());
  DeviceRun run;
  if (gate) ASSAY_RETURN_IF_ERROR(driver_.Check(CloseGate(), "assay_gate"));
  const CUresult begun = cu_.cuEventRecord(begin_, stream_);
  run.result = launch(stream_);
  const CUresult recorded = cu_.cuEventRecord(end_, stream_);
  const int64_t released_ns = NowNs();
  if (gate) std::atomic_ref<uint32_t>(gate_[0]).store(1);
  ASSAY_RETURN_IF_ERROR(driver_.Check(begun, "cuEventRecord"));
  // By now the first launches may have failed on the device.
  if (recorded != cuda::CUDA_SUCCESS) {
    if (run.result == cuda::CUDA_SUCCESS) run.result = recorded;
    return run;
  }
  CUresult ended = cuda::CUDA_SUCCESS;
  if (!WaitForEnd(timeout, &ended)) {
    run.timed_out = true;
    return run;
  }
  const int64_t ended_ns = NowNs();
  // What a kernel started on the device itself may still run.
  const CUresult quiet = cu_.cuCtxSynchronize();
  run.late_ns = static_cast<double>(NowNs() - ended_ns);
  run.wall_ns = static_cast<double>(ended_ns - released_ns);
  for (const CUresult result : {ended, quiet}) {
    if (run.result == cuda::CUDA_SUCCESS) run.result = result;
  }
  if (run.result != cuda::CUDA_SUCCESS) return run;
  run.gated = gate && std::atomic_ref<uint32_t>(gate_[1]).load() == 0;
  float milliseconds = 0;
  ASSAY_RETURN_IF_ERROR(
      driver_.Check(cu_.cuEventElapsedTime(&milliseconds, begin_, end_), "cuEventElapsedTime"));
  run.event_ns = 1e6 * static_cast<double>(milliseconds);
  return run;
}

absl::StatusOr<DeviceRun> DeviceContext::RunEmpty(absl::Duration timeout) {
  const auto launch = [this](cuda::CUstream stream) {
    return cu_.cuLaunchKernel(empty_kernel_, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr);
  };
  ASSAY_ASSIGN_OR_RETURN(const DeviceRun run, Run(launch, true, timeout));
  if (run.timed_out) return absl::UnavailableError("an empty kernel does not end");
  ASSAY_RETURN_IF_ERROR(driver_.Check(run.result, "an empty kernel"));
  return run;
}

}  // namespace assay
