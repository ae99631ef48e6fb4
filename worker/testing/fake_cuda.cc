#include "worker/testing/fake_cuda.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/cuda/driver_functions.h"
#include "base/cuda/emulator_abi.h"

namespace assay {

void* FakeCudaEmulator();

namespace {

using cuda::AssayEmulatorOptions;
using cuda::AssayEmulatorReport;
using cuda::CUcontext;
using cuda::CUdevice;
using cuda::CUdevice_attribute;
using cuda::CUdeviceptr;
using cuda::CUevent;
using cuda::CUfunction;
using cuda::CUjit_option;
using cuda::CUmodule;
using cuda::CUresult;
using cuda::CUstream;
using enum cuda::CUresult;

constexpr double kKernelNs = 1000;
constexpr double kBlockNs = 10;
constexpr int kEventsOfACall = 2;
constexpr uint64_t kInstructionsMax = 5'000'000;

// What waits in the one queue that all streams share.
struct Item {
  CUfunction function = nullptr;  // nullptr: an event
  unsigned int dims[6] = {};
  unsigned int shared_bytes = 0;
  std::vector<std::vector<std::byte>> arguments;
  CUevent event = nullptr;
};

// One of a process, as a driver is. Used by one thread.
class FakeDriver {
 public:
  static FakeDriver& Get() {
    static FakeDriver driver;
    return driver;
  }

  const cuda::DriverFunctions& real() const { return real_; }
  FakeCudaControl& control() { return control_; }

  CUresult Configure() {
    AssayEmulatorOptions options = {};
    options.struct_bytes = sizeof(options);
    options.arch = static_cast<uint32_t>(control_.arch);
    options.instructions_max = kInstructionsMax;
    options.device_bytes = control_.device_bytes;
    return emulator_.assayEmulatorConfigure(&options);
  }

  void Push(Item item) { queue_.push_back(std::move(item)); }

  // A context that its user gave up would have ended with its process.
  void EndOldContext() {
    queue_.clear();
    is_cold_ = false;
    gated_events_ = 0;
    flush_value_ = 0;
    if (context_ == nullptr) return;
    (void)real_.cuCtxDestroy(context_);
    context_ = nullptr;
    --control_.live_contexts;
  }
  void NoteContext(CUcontext context) {
    context_ = context;
    control_.live_contexts += context == nullptr ? -1 : 1;
  }

  // Runs what waits.
  CUresult Flush() {
    CUresult result = CUDA_SUCCESS;
    while (!queue_.empty() && result == CUDA_SUCCESS) {
      const Item item = std::move(queue_.front());
      queue_.pop_front();
      result = item.function == nullptr ? RecordEvent(item) : RunKernel(item);
    }
    queue_.clear();
    (void)emulator_.assayEmulatorTakeReport([](void*, const AssayEmulatorReport*) {}, nullptr);
    return result;
  }

  double TimeOf(CUevent event) { return times_[event]; }

  CUresult HostAlloc(void** host, size_t bytes) {
    CUdeviceptr shadow = 0;
    const CUresult got = real_.cuMemAlloc(&shadow, bytes);
    if (got != CUDA_SUCCESS) return got;
    *host = std::calloc(1, bytes);
    mapped_[reinterpret_cast<uintptr_t>(*host)] = {shadow, bytes};
    control_.mapped = static_cast<unsigned char*>(*host);
    control_.mapped_bytes = bytes;
    return CUDA_SUCCESS;
  }

  void NoteModule(CUmodule module, const char* text) { modules_[module] = text; }

  // Drivers tell of what is visible; the emulated one tells of everything.
  bool IsVisible(CUmodule module, const std::string& name) {
    const std::string& text = modules_[module];
    for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
      const size_t begin = text.find_last_of(";}\n", at);
      const std::string before = text.substr(begin + 1, at - begin - 1);
      if (before.find(".global") == std::string::npos) continue;
      return before.find(".visible") != std::string::npos;
    }
    return false;
  }

  void NoteFlush(CUdeviceptr address, unsigned int value, size_t count) {
    if (count * sizeof(uint32_t) < 2 * kFakeCudaL2Bytes) return;
    ++control_.cache_flushes;
    control_.flush_address = address;
    if (value == 0 || value == flush_value_) ++control_.zero_flushes;
    flush_value_ = value;
    is_cold_ = true;
  }

 private:
  struct Mapped {
    CUdeviceptr shadow = 0;
    size_t bytes = 0;
  };

  FakeDriver() {
    const auto resolve = [](const char* name) { return dlsym(FakeCudaEmulator(), name); };
    if (cuda::LoadDriverFunctions(resolve, &real_) != nullptr ||
        cuda::LoadEmulatorFunctions(resolve, &emulator_) != nullptr) {
      std::abort();
    }
  }

  CUresult RecordEvent(const Item& item) {
    times_[item.event] = now_ns_;
    if (gated_events_ > 0) --gated_events_;
    return CUDA_SUCCESS;
  }

  CUresult RunKernel(Item item) {
    const char* name = nullptr;
    (void)real_.cuFuncGetName(&name, item.function);
    const std::string kernel = name == nullptr ? "" : name;
    const bool is_helper = kernel.rfind("assay_", 0) == 0;
    const double blocks =
        static_cast<double>(item.dims[0]) * item.dims[1] * static_cast<double>(item.dims[2]);
    const Mapped* memory = nullptr;
    std::byte* host = nullptr;
    for (std::vector<std::byte>& argument : item.arguments) Translate(&argument, &memory, &host);
    if (!is_helper) {
      ++control_.candidate_launches;
      if (gated_events_ > 0) ++control_.launches_behind_gate;
      if (control_.fail_next_kernel != CUDA_SUCCESS) {
        return std::exchange(control_.fail_next_kernel, CUDA_SUCCESS);
      }
      now_ns_ += (is_cold_ ? 2 : 1) * (kKernelNs + kBlockNs * blocks);
      now_ns_ += control_.event_excess_ns;
    } else if (kernel == "assay_empty") {
      ++control_.empty_launches;
      now_ns_ += kKernelNs;
    } else if (kernel == "assay_fill_shared") {
      ++control_.shared_fills;
    }
    if (kernel != "assay_gate" && kernel != "assay_empty") {
      is_cold_ = false;
      if (is_helper) gated_events_ = 0;
    }
    if (memory != nullptr) (void)real_.cuMemcpyHtoD(memory->shadow, host, memory->bytes);
    const CUresult result = Launch(item);
    if (memory != nullptr && result == CUDA_SUCCESS) {
      (void)real_.cuMemcpyDtoH(host, memory->shadow, memory->bytes);
      uint32_t words[2];
      std::memcpy(words, host, sizeof(words));
      gated_events_ = words[1] == 0 ? kEventsOfACall : 0;
      ++(words[1] == 0 ? control_.gates_passed : control_.gates_given_up);
    }
    return result;
  }

  CUresult Launch(const Item& item) {
    std::vector<void*> pointers;
    for (const std::vector<std::byte>& argument : item.arguments) {
      pointers.push_back(const_cast<std::byte*>(argument.data()));
    }
    return real_.cuLaunchKernel(item.function, item.dims[0], item.dims[1], item.dims[2],
                                item.dims[3], item.dims[4], item.dims[5], item.shared_bytes,
                                nullptr, pointers.data(), nullptr);
  }

  // An address of the host's becomes that of its shadow.
  void Translate(std::vector<std::byte>* argument, const Mapped** memory, std::byte** host) {
    if (argument->size() != sizeof(uint64_t)) return;
    uint64_t value = 0;
    std::memcpy(&value, argument->data(), sizeof(value));
    const auto it = mapped_.find(value);
    if (it == mapped_.end()) return;
    *memory = &it->second;
    *host = reinterpret_cast<std::byte*>(value);
    std::memcpy(argument->data(), &it->second.shadow, sizeof(value));
  }

  cuda::DriverFunctions real_;
  cuda::EmulatorFunctions emulator_;
  FakeCudaControl control_;
  std::deque<Item> queue_;
  std::map<CUevent, double> times_;
  std::map<CUmodule, std::string> modules_;
  std::map<uint64_t, Mapped> mapped_;
  CUcontext context_ = nullptr;
  double now_ns_ = 0;
  unsigned int flush_value_ = 0;
  bool is_cold_ = false;
  int gated_events_ = 0;  // to come behind a gate that opened
};

// Of what the fake changes; everything else is in fake_cuda_forward.cc.
FakeDriver& Driver() { return FakeDriver::Get(); }
const cuda::DriverFunctions& Real() { return Driver().real(); }

// body() after what waits has run.
template <typename Body>
CUresult Flushed(Body body) {
  const CUresult result = Driver().Flush();
  return result == CUDA_SUCCESS ? body() : result;
}

}  // namespace
}  // namespace assay

#define ASSAY_EXPORT extern "C" __attribute__((visibility("default")))

namespace assay {

ASSAY_EXPORT FakeCudaControl* assayFakeCudaReset() {
  Driver().EndOldContext();
  Driver().control() = FakeCudaControl();
  return &Driver().control();
}

ASSAY_EXPORT CUresult cuInit(unsigned int flags) {
  const CUresult result = Driver().control().init_result;
  return result == CUDA_SUCCESS ? Real().cuInit(flags) : result;
}

ASSAY_EXPORT CUresult cuDriverGetVersion(int* version) {
  *version = Driver().control().driver_version;
  return CUDA_SUCCESS;
}

ASSAY_EXPORT CUresult cuDeviceGetCount(int* count) {
  *count = Driver().control().device_count;
  return CUDA_SUCCESS;
}

ASSAY_EXPORT CUresult cuDeviceGetName(char* name, int bytes, CUdevice device) {
  std::strncpy(name, kFakeCudaDeviceName, static_cast<size_t>(bytes));
  return CUDA_SUCCESS;
}

ASSAY_EXPORT CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  *bytes = Driver().control().device_bytes;
  return CUDA_SUCCESS;
}

ASSAY_EXPORT CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute,
                                           CUdevice device) {
  switch (attribute) {
    case cuda::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = 1;
      return CUDA_SUCCESS;
    case cuda::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      *value = static_cast<int>(kFakeCudaL2Bytes);
      return CUDA_SUCCESS;
    case cuda::CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE:
      *value = static_cast<int>(kFakeCudaL2Bytes / 2);
      return CUDA_SUCCESS;
    case cuda::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = Driver().control().arch / 10;
      return CUDA_SUCCESS;
    case cuda::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = Driver().control().arch % 10;
      return CUDA_SUCCESS;
    default:
      return Real().cuDeviceGetAttribute(value, attribute, device);
  }
}

ASSAY_EXPORT CUresult cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device) {
  Driver().EndOldContext();
  const CUresult configured = Driver().Configure();
  if (configured != CUDA_SUCCESS) return configured;
  const CUresult made = Real().cuCtxCreate(context, flags, device);
  if (made == CUDA_SUCCESS) Driver().NoteContext(*context);
  return made;
}

ASSAY_EXPORT CUresult cuCtxDestroy_v2(CUcontext context) {
  (void)Driver().Flush();
  const CUresult destroyed = Real().cuCtxDestroy(context);
  if (destroyed == CUDA_SUCCESS) Driver().NoteContext(nullptr);
  return destroyed;
}

ASSAY_EXPORT CUresult cuCtxSynchronize() {
  return Flushed([] { return Real().cuCtxSynchronize(); });
}

ASSAY_EXPORT CUresult cuCtxResetPersistingL2Cache() {
  ++Driver().control().persisting_resets;
  return CUDA_SUCCESS;
}

ASSAY_EXPORT CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int count,
                                         CUjit_option* options, void** values) {
  const CUresult forced = Driver().control().load_result;
  if (forced != CUDA_SUCCESS) return forced;
  const CUresult loaded = Real().cuModuleLoadDataEx(module, image, count, options, values);
  if (loaded == CUDA_SUCCESS) Driver().NoteModule(*module, static_cast<const char*>(image));
  return loaded;
}

ASSAY_EXPORT CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  const CUresult forced = Driver().control().helper_load_result;
  return forced == CUDA_SUCCESS ? Real().cuModuleLoadData(module, image) : forced;
}

ASSAY_EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule module,
                                           const char* name) {
  if (!Driver().IsVisible(module, name)) return CUDA_ERROR_NOT_FOUND;
  return Real().cuModuleGetGlobal(address, bytes, module, name);
}

ASSAY_EXPORT CUresult cuMemHostAlloc(void** host, size_t bytes, unsigned int flags) {
  return Driver().HostAlloc(host, bytes);
}

ASSAY_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes,
                                           CUstream stream) {
  return Flushed([&] { return Real().cuMemcpyHtoDAsync(to, from, bytes, stream); });
}

ASSAY_EXPORT CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes,
                                           CUstream stream) {
  return Flushed([&] { return Real().cuMemcpyDtoHAsync(to, from, bytes, stream); });
}

ASSAY_EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count,
                                      CUstream stream) {
  return Flushed([&] { return Real().cuMemsetD8Async(to, value, count, stream); });
}

ASSAY_EXPORT CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count,
                                       CUstream stream) {
  return Flushed([&] {
    Driver().NoteFlush(to, value, count);
    return Real().cuMemsetD32Async(to, value, count, stream);
  });
}

ASSAY_EXPORT CUresult cuStreamSynchronize(CUstream stream) {
  return Flushed([&] { return Real().cuStreamSynchronize(stream); });
}

ASSAY_EXPORT CUresult cuEventRecord(CUevent event, CUstream stream) {
  Item item;
  item.event = event;
  Driver().Push(std::move(item));
  return CUDA_SUCCESS;
}

ASSAY_EXPORT CUresult cuEventQuery(CUevent event) {
  if (Driver().control().hangs) {
    return CUDA_ERROR_NOT_READY;
  }
  return Flushed([&] { return Real().cuEventQuery(event); });
}

ASSAY_EXPORT CUresult cuEventSynchronize(CUevent event) {
  return Flushed([&] { return Real().cuEventSynchronize(event); });
}

ASSAY_EXPORT CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  const CUresult result = Driver().Flush();
  if (result != CUDA_SUCCESS) return result;
  *milliseconds = static_cast<float>((Driver().TimeOf(end) - Driver().TimeOf(start)) / 1e6);
  return CUDA_SUCCESS;
}

ASSAY_EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                     unsigned int grid_z, unsigned int block_x,
                                     unsigned int block_y, unsigned int block_z,
                                     unsigned int dynamic_shared_bytes, CUstream stream,
                                     void** arguments, void** extra) {
  Item item;
  item.function = function;
  const unsigned int dims[] = {grid_x, grid_y, grid_z, block_x, block_y, block_z};
  std::memcpy(item.dims, dims, sizeof(dims));
  item.shared_bytes = dynamic_shared_bytes;
  size_t offset = 0;
  size_t bytes = 0;
  for (size_t i = 0; Real().cuFuncGetParamInfo(function, i, &offset, &bytes) == CUDA_SUCCESS; ++i) {
    const auto* const from = static_cast<const std::byte*>(arguments[i]);
    item.arguments.emplace_back(from, from + bytes);
  }
  Driver().Push(std::move(item));
  return CUDA_SUCCESS;
}

}  // namespace assay
