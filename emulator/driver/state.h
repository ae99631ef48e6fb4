// Everything the emulated driver knows: contexts and the objects in them, configuration, and what
// launches found.
//
// The driver API has no argument for its state, so there is one State a process; only State::Get
// knows it. Every field is guarded by `mutex`, which an API call holds from its start to its end,
// launches included: calls of several threads take turns, which is a schedule that the API allows.
//
// Handles are numbers that were given out, never addresses: a handle that is not in its registry is
// refused.
#ifndef ASSAY_EMULATOR_DRIVER_STATE_H_
#define ASSAY_EMULATOR_DRIVER_STATE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "base/cuda/driver_abi.h"
#include "emulator/driver/device_model.h"
#include "emulator/engine.h"
#include "emulator/memory/device_memory.h"

namespace assay::emulator {

inline constexpr size_t kReportFaultsMax = 512;           // of all launches of one report
inline constexpr size_t kReportOutputBytesMax = 1 << 20;  // likewise
inline constexpr size_t kBufferNameBytesMax = 256;
inline constexpr size_t kErrorBytesMax = 16 << 10;  // of the last message
inline constexpr size_t kObjectsMax = 1 << 20;      // handles of one kind that are live

struct ContextObject;
struct ModuleObject;

// A kernel of a module. Lives as long as the module.
struct FunctionObject {
  ModuleObject* module = nullptr;
  std::string name;
  const Program* program = nullptr;
  int dynamic_shared_max = 0;  // bytes of dynamic shared memory that launches may ask for
  int carveout = -1;           // preferred share of shared memory in percent; -1: none
};

struct ModuleObject {
  cuda::CUmodule handle = nullptr;
  ContextObject* context = nullptr;
  std::unique_ptr<LoadedModule> loaded;
  std::map<std::string, cuda::CUfunction, std::less<>> functions;  // those asked for
  cuda::CUlibrary library = nullptr;                               // that it was loaded for
};

struct StreamObject {
  ContextObject* context = nullptr;
  unsigned int flags = 0;
  int priority = 0;
  uint64_t id = 0;
};

struct EventObject {
  ContextObject* context = nullptr;
  unsigned int flags = 0;
};

struct HostBlock {
  std::unique_ptr<std::byte[]> storage;
  size_t bytes = 0;
  unsigned int flags = 0;
};

struct ContextObject {
  cuda::CUcontext handle = nullptr;
  uint64_t id = 0;
  unsigned int flags = 0;
  cuda::CUfunc_cache cache_config = cuda::CU_FUNC_CACHE_PREFER_NONE;
  std::map<int, size_t> limits;
  // What every call returns from the first fault of a launch on.
  cuda::CUresult sticky = cuda::CUDA_SUCCESS;
  std::unique_ptr<DeviceMemory> memory;
  std::map<const void*, HostBlock> host_blocks;         // by address
  std::map<cuda::CUlibrary, cuda::CUmodule> libraries;  // those loaded here
};

// PTX that belongs to no context; loaded into one when a kernel or variable is asked for there.
struct LibraryObject {
  std::string ptx;
  std::set<std::string, std::less<>> kernel_names;
  std::map<std::string, cuda::CUkernel, std::less<>> kernels;  // those asked for
};

struct KernelObject {
  cuda::CUlibrary library = nullptr;
  std::string name;
};

// The live objects of one kind by handle.
template <typename Handle, typename Object>
class Registry {
 public:
  Object* Find(Handle handle) const {
    const auto it = objects_.find(handle);
    return it == objects_.end() ? nullptr : it->second.get();
  }
  Object* Add(Handle handle, std::unique_ptr<Object> object) {
    return objects_.emplace(handle, std::move(object)).first->second.get();
  }
  // nullptr when there is none.
  std::unique_ptr<Object> Remove(Handle handle) {
    const auto it = objects_.find(handle);
    if (it == objects_.end()) return nullptr;
    std::unique_ptr<Object> object = std::move(it->second);
    objects_.erase(it);
    return object;
  }
  template <typename Predicate>
  void RemoveIf(Predicate&& predicate) {
    std::erase_if(objects_, [&](const auto& entry) { return predicate(*entry.second); });
  }
  size_t size() const { return objects_.size(); }

 private:
  std::map<Handle, std::unique_ptr<Object>> objects_;
};

struct EmulatorSettings {
  uint32_t arch = 80;
  uint64_t seed = 0;
  int host_threads = 1;
  bool perturb_approximations = false;
  bool check_races = true;
  uint64_t instructions_max = LaunchOptions().instructions_max;
  uint64_t device_bytes = DeviceMemory::Options().bytes;
  uint64_t clock_rate = LaunchOptions().clock_rate;
  uint64_t clock_offset = 0;
  int64_t cpu_ns_left = LaunchOptions().cpu_ns_max;  // to the launches to come
};

// What launches found since it was last taken.
struct ReportSink {
  std::vector<Fault> faults;
  uint64_t faults_dropped = 0;
  Counters counters;
  uint64_t launches = 0;
  uint64_t launches_stopped = 0;
  std::string output;
  uint64_t output_bytes_dropped = 0;
  std::string last_error;

  void Add(LaunchResult result);
};

struct State {
  absl::Mutex mutex;
  bool initialized = false;
  EmulatorSettings settings;
  Registry<cuda::CUcontext, ContextObject> contexts;
  Registry<cuda::CUmodule, ModuleObject> modules;
  Registry<cuda::CUfunction, FunctionObject> functions;
  Registry<cuda::CUstream, StreamObject> streams;
  Registry<cuda::CUevent, EventObject> events;
  Registry<cuda::CUlibrary, LibraryObject> libraries;
  Registry<cuda::CUkernel, KernelObject> kernels;
  cuda::CUcontext primary = nullptr;  // while it is active
  uint64_t primary_count = 0;         // retains less releases
  unsigned int primary_flags = 0;
  uint64_t launches = 0;  // since the last configuration; varies the seed
  uint64_t handles = 0;   // given out
  ReportSink report;

  // The one of the process. Made at the first call and never destroyed, since calls may come from
  // exit handlers.
  static State& Get();

  const DeviceModel& model() const;

  // A handle that was never given out before.
  template <typename Handle>
  Handle NextHandle() {
    // Not canonical addresses, so that a dereferenced handle faults at once.
    return reinterpret_cast<Handle>(uint64_t{0xa55a} << 48 | ++handles << 4);
  }

  // Keeps `message` for the report; returns `result`.
  cuda::CUresult Fail(cuda::CUresult result, std::string_view message);
  // The same with the status' message and code.
  cuda::CUresult Fail(const absl::Status& status);

  // An empty context with memory of its own.
  cuda::CUresult MakeContext(unsigned int flags, cuda::CUcontext* context);
  // Takes away all objects in a context, its fault and its memory; it gets fresh memory under the
  // same handle.
  cuda::CUresult ResetContext(ContextObject* context);
  void DestroyContext(cuda::CUcontext context);
  // Of one module, with its functions.
  void DestroyModule(cuda::CUmodule module);

 private:
  void ClearContext(ContextObject* context);
};

// The calling thread's stack of contexts; the last one is current. Every thread has its own, as in
// CUDA.
std::vector<cuda::CUcontext>& ThreadContexts();

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_DRIVER_STATE_H_
