#include "worker/ceiling/cuda/bench_device.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace assay {
namespace {

constexpr unsigned kOneAsFloat = 0x3f800000;
constexpr double kNsPerMs = 1e6;
constexpr size_t kJitLogBytes = 4096;
// Some 100 us of one warp. It keeps the device busy while the host submits what is timed, so that
// the events lie as close to the launches as the device allows.
constexpr BenchShape kDelayShape = {1, 32, 1000, 1};

}  // namespace

absl::StatusOr<std::unique_ptr<BenchDevice>> BenchDevice::Open(const CudaDriver* driver,
                                                               int ordinal) {
  std::unique_ptr<BenchDevice> device(new BenchDevice(driver));
  ASSAY_RETURN_IF_ERROR(device->Start(ordinal));
  return device;
}

BenchDevice::~BenchDevice() {
  // Takes modules, events and arrays with it.
  if (context_ != nullptr) (void)cu_.cuCtxDestroy(context_);
}

absl::Status BenchDevice::Start(int ordinal) {
  cuda::CUdevice device = 0;
  ASSAY_RETURN_IF_ERROR(driver_.Check(cu_.cuInit(0), "cuInit"));
  ASSAY_RETURN_IF_ERROR(driver_.Check(cu_.cuDeviceGet(&device, ordinal), "cuDeviceGet"));
  ASSAY_RETURN_IF_ERROR(ReadFacts(device));
  ASSAY_RETURN_IF_ERROR(driver_.Check(cu_.cuCtxCreate(&context_, 0, device), "cuCtxCreate"));
  ASSAY_RETURN_IF_ERROR(
      driver_.Check(cu_.cuEventCreate(&start_, cuda::CU_EVENT_DEFAULT), "cuEventCreate"));
  return driver_.Check(cu_.cuEventCreate(&stop_, cuda::CU_EVENT_DEFAULT), "cuEventCreate");
}

absl::Status BenchDevice::ReadFacts(cuda::CUdevice device) {
  char name[256] = {};
  ASSAY_RETURN_IF_ERROR(
      driver_.Check(cu_.cuDeviceGetName(name, sizeof name - 1, device), "cuDeviceGetName"));
  facts_.name = name;
  int major = 0;
  int minor = 0;
  int l2 = 0;
  const std::pair<cuda::CUdevice_attribute, int*> attributes[] = {
      {cuda::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major},
      {cuda::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor},
      {cuda::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &facts_.multiprocessors},
      {cuda::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &l2}};
  for (const auto& [attribute, value] : attributes) {
    ASSAY_RETURN_IF_ERROR(
        driver_.Check(cu_.cuDeviceGetAttribute(value, attribute, device), "cuDeviceGetAttribute"));
  }
  facts_.arch = 10 * major + minor;
  facts_.l2_bytes = l2;
  size_t memory = 0;
  ASSAY_RETURN_IF_ERROR(driver_.Check(cu_.cuDeviceTotalMem(&memory, device), "cuDeviceTotalMem"));
  facts_.memory_bytes = static_cast<int64_t>(memory);
  ASSAY_RETURN_IF_ERROR(
      driver_.Check(cu_.cuDriverGetVersion(&facts_.driver_version), "cuDriverGetVersion"));
  ASSAY_RETURN_IF_ERROR(
      driver_.Check(cu_.cuDeviceGetUuid(&facts_.uuid, device), "cuDeviceGetUuid"));
  char bus[64] = {};
  if (cu_.cuDeviceGetPCIBusId(bus, sizeof bus, device) == cuda::CUDA_SUCCESS) {
    facts_.pci_bus_id = bus;
  }
  return absl::OkStatus();
}

absl::StatusOr<BenchDevice::Loaded> BenchDevice::Load(const BenchKernel& kernel) {
  const auto known = loaded_.find(kernel.ptx);
  if (known != loaded_.end()) return known->second;
  const std::string what = absl::StrCat(kernel.name, " (", kernel.variant, ")");
  std::string log(kJitLogBytes, '\0');
  cuda::CUjit_option options[] = {cuda::CU_JIT_ERROR_LOG_BUFFER,
                                  cuda::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
  cuda::CUmodule module = nullptr;
  const cuda::CUresult loaded =
      cu_.cuModuleLoadDataEx(&module, kernel.ptx.c_str(), 2, options, values);
  if (loaded != cuda::CUDA_SUCCESS) {
    return absl::InternalError(absl::StrCat("the driver does not load ", what, ": ",
                                            driver_.ErrorName(loaded), " ", log.c_str()));
  }
  Loaded result;
  result.arrays = kernel.arrays;
  ASSAY_RETURN_IF_ERROR(
      driver_.Check(cu_.cuModuleGetFunction(&result.function, module, kBenchEntry), what.c_str()));
  loaded_.emplace(kernel.ptx, result);
  return result;
}

absl::Status BenchDevice::Reserve(uint64_t array_bytes, int arrays) {
  for (size_t i = 0; i < static_cast<size_t>(arrays); ++i) {
    if (array_bytes_[i] >= array_bytes) continue;
    if (arrays_[i] != 0) {
      ASSAY_RETURN_IF_ERROR(driver_.Check(cu_.cuMemFree(arrays_[i]), "cuMemFree"));
      arrays_[i] = 0;
      array_bytes_[i] = 0;
    }
    const cuda::CUresult got = cu_.cuMemAlloc(&arrays_[i], array_bytes);
    if (got == cuda::CUDA_ERROR_OUT_OF_MEMORY) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no room for ", arrays, " arrays of ", array_bytes, " bytes on the device"));
    }
    ASSAY_RETURN_IF_ERROR(driver_.Check(got, "cuMemAlloc"));
    array_bytes_[i] = array_bytes;
    ASSAY_RETURN_IF_ERROR(driver_.Check(
        cu_.cuMemsetD32(arrays_[i], kOneAsFloat, array_bytes / sizeof(uint32_t)), "cuMemsetD32"));
  }
  return absl::OkStatus();
}

absl::Status BenchDevice::Launch(const Loaded& kernel, const BenchShape& shape) {
  std::array<cuda::CUdeviceptr, 3> arrays = {};
  std::copy_n(arrays_.begin(), kernel.arrays, arrays.begin());
  uint32_t rounds = shape.rounds;
  uint32_t passes = shape.passes;
  void* arguments[] = {&arrays[0], &arrays[1], &arrays[2], &rounds, &passes};
  return driver_.Check(cu_.cuLaunchKernel(kernel.function, shape.grid, 1, 1, shape.block, 1, 1, 0,
                                          nullptr, arguments, nullptr),
                       "cuLaunchKernel");
}

absl::Status BenchDevice::Run(const BenchKernel& kernel, const BenchShape& shape) {
  ASSAY_ASSIGN_OR_RETURN(const Loaded loaded, Load(kernel));
  ASSAY_RETURN_IF_ERROR(Reserve(StreamArrayBytes(kernel, shape), kernel.arrays));
  ASSAY_RETURN_IF_ERROR(Launch(loaded, shape));
  return driver_.Check(cu_.cuCtxSynchronize(), "cuCtxSynchronize");
}

absl::StatusOr<double> BenchDevice::TimeOnce(const Loaded& delay, const Loaded& kernel,
                                             const BenchShape& shape, int launches) {
  ASSAY_RETURN_IF_ERROR(Launch(delay, kDelayShape));
  ASSAY_RETURN_IF_ERROR(driver_.Check(cu_.cuEventRecord(start_, nullptr), "cuEventRecord"));
  for (int i = 0; i < launches; ++i) ASSAY_RETURN_IF_ERROR(Launch(kernel, shape));
  ASSAY_RETURN_IF_ERROR(driver_.Check(cu_.cuEventRecord(stop_, nullptr), "cuEventRecord"));
  ASSAY_RETURN_IF_ERROR(driver_.Check(cu_.cuEventSynchronize(stop_), "cuEventSynchronize"));
  float ms = 0;
  ASSAY_RETURN_IF_ERROR(
      driver_.Check(cu_.cuEventElapsedTime(&ms, start_, stop_), "cuEventElapsedTime"));
  return static_cast<double>(ms) * kNsPerMs;
}

absl::StatusOr<std::vector<double>> BenchDevice::Time(const BenchKernel& kernel,
                                                      const BenchShape& shape, int launches,
                                                      int samples) {
  if (driver_.is_emulated()) {
    return absl::FailedPreconditionError("an emulated device has no times");
  }
  ASSAY_ASSIGN_OR_RETURN(const Loaded delay, Load(DelayBench()));
  ASSAY_ASSIGN_OR_RETURN(const Loaded loaded, Load(kernel));
  // Once untimed: code and translations of addresses come into caches.
  ASSAY_RETURN_IF_ERROR(Run(kernel, shape));
  std::vector<double> times;
  for (int i = 0; i < samples; ++i) {
    ASSAY_ASSIGN_OR_RETURN(const double ns, TimeOnce(delay, loaded, shape, launches));
    times.push_back(ns);
  }
  return times;
}

}  // namespace assay
