// The functions that a real driver does not have: configuration, names of buffers, reports.
#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "base/text.h"
#include "emulator/driver/call.h"
#include "emulator/driver/copies.h"
#include "emulator/driver/device_model.h"

namespace assay::emulator::exported {
namespace {

constexpr uint32_t kHostThreadsMax = 1024;
constexpr uint64_t kDeviceBytesLeast = 1 << 20;
constexpr uint64_t kDeviceBytesMost = uint64_t{1} << 40;

// Numbers of fault kinds are the same on both sides.
static_assert(static_cast<int>(FaultKind::kOutOfBounds) == cuda::kAssayEmulatorFaultOutOfBounds);
static_assert(static_cast<int>(FaultKind::kSharedRace) == cuda::kAssayEmulatorFaultSharedRace);
static_assert(static_cast<int>(FaultKind::kDeadlock) == cuda::kAssayEmulatorFaultDeadlock);
static_assert(static_cast<int>(FaultKind::kTrap) == cuda::kAssayEmulatorFaultTrap);
static_assert(static_cast<int>(FaultKind::kTimeBudget) == cuda::kAssayEmulatorFaultTimeBudget);

CUresult ReadOptions(State& state, const AssayEmulatorOptions* options,
                     EmulatorSettings* settings) {
  if (options == nullptr || options->struct_bytes != sizeof(AssayEmulatorOptions)) {
    return state.Fail(CUDA_ERROR_INVALID_VALUE,
                      "no options, or options of another version of the emulator's interface");
  }
  if (options->perturb_approximations > 1 || options->check_races > 1 || options->reserved != 0 ||
      options->host_threads > kHostThreadsMax) {
    return state.Fail(CUDA_ERROR_INVALID_VALUE,
                      "an option that is neither 0 nor 1, or more than 1024 host threads");
  }
  if (options->arch != 0) settings->arch = options->arch;
  if (FindDeviceModel(settings->arch) == nullptr) {
    return state.Fail(CUDA_ERROR_INVALID_VALUE,
                      "sm_" + std::to_string(options->arch) + " is not emulated");
  }
  if (options->device_bytes != 0) {
    if (options->device_bytes < kDeviceBytesLeast || options->device_bytes > kDeviceBytesMost) {
      return state.Fail(CUDA_ERROR_INVALID_VALUE, "a device has 1 MiB to 1 TiB of memory");
    }
    settings->device_bytes = options->device_bytes;
  }
  settings->seed = options->seed;
  if (options->host_threads != 0) settings->host_threads = static_cast<int>(options->host_threads);
  settings->perturb_approximations = options->perturb_approximations != 0;
  settings->check_races = options->check_races != 0;
  if (options->instructions_max != 0) settings->instructions_max = options->instructions_max;
  if (options->clock_rate != 0) settings->clock_rate = options->clock_rate;
  settings->clock_offset = options->clock_offset;
  if (options->cpu_ns_max > uint64_t{std::numeric_limits<int64_t>::max()}) {
    return state.Fail(CUDA_ERROR_INVALID_VALUE, "more than 2^63 ns of CPU time");
  }
  if (options->cpu_ns_max != 0) settings->cpu_ns_left = static_cast<int64_t>(options->cpu_ns_max);
  return CUDA_SUCCESS;
}

cuda::AssayEmulatorCounters Convert(const Counters& from) {
  cuda::AssayEmulatorCounters to = {};
  to.warp_instructions = from.warp_instructions;
  to.thread_instructions = from.thread_instructions;
  to.f16_flops = from.f16_flops;
  to.f32_flops = from.f32_flops;
  to.f64_flops = from.f64_flops;
  to.tensor_flops = from.tensor_flops;
  to.special_operations = from.special_operations;
  to.integer_operations = from.integer_operations;
  to.global_load_bytes = from.global_load_bytes;
  to.global_store_bytes = from.global_store_bytes;
  to.shared_load_bytes = from.shared_load_bytes;
  to.shared_store_bytes = from.shared_store_bytes;
  to.local_bytes = from.local_bytes;
  to.atomic_operations = from.atomic_operations;
  to.global_sectors = from.global_sectors;
  to.global_sectors_least = from.global_sectors_least;
  to.shared_accesses = from.shared_accesses;
  to.shared_bank_conflicts = from.shared_bank_conflicts;
  to.branches = from.branches;
  to.divergent_branches = from.divergent_branches;
  to.barriers = from.barriers;
  return to;
}
static_assert(sizeof(Counters) == sizeof(cuda::AssayEmulatorCounters),
              "a counter is missing on one side");

// Texts of the result point into `fault` and `space`.
AssayEmulatorFault Convert(const Fault& fault, const std::string& space) {
  AssayEmulatorFault to = {};
  to.struct_bytes = sizeof to;
  to.kind = static_cast<cuda::AssayEmulatorFaultKind>(fault.kind);
  to.kind_name = FaultName(fault.kind);
  to.kernel = fault.kernel.c_str();
  to.opcode = fault.opcode.c_str();
  to.file = fault.file.c_str();
  to.line = fault.location.line;
  to.ptx_line = fault.location.ptx_line;
  to.block[0] = fault.block.x;
  to.block[1] = fault.block.y;
  to.block[2] = fault.block.z;
  to.thread[0] = fault.thread.x;
  to.thread[1] = fault.thread.y;
  to.thread[2] = fault.thread.z;
  to.space = space.c_str();
  to.address = fault.address;
  to.bytes = fault.bytes;
  to.count = fault.count;
  to.message = fault.message.c_str();
  return to;
}

void Deliver(const ReportSink& sink, AssayEmulatorReportCallback callback, void* user) {
  std::vector<std::string> spaces;
  spaces.reserve(sink.faults.size());  // Their texts must not move.
  std::vector<AssayEmulatorFault> faults;
  faults.reserve(sink.faults.size());
  for (const Fault& fault : sink.faults) {
    spaces.emplace_back(fault.bytes == 0 ? std::string_view() : SpaceName(fault.space));
    faults.push_back(Convert(fault, spaces.back()));
  }
  AssayEmulatorReport report = {};
  report.struct_bytes = sizeof report;
  report.fault_bytes = sizeof(AssayEmulatorFault);
  report.faults = faults.data();
  report.fault_count = faults.size();
  report.faults_dropped = sink.faults_dropped;
  report.counters = Convert(sink.counters);
  report.launches = sink.launches;
  report.launches_stopped = sink.launches_stopped;
  report.output = sink.output.c_str();
  report.output_bytes = sink.output.size();
  report.output_bytes_dropped = sink.output_bytes_dropped;
  report.last_error = sink.last_error.c_str();
  callback(user, &report);
}

}  // namespace

uint32_t assayEmulatorVersion() { return cuda::kEmulatorAbiVersion; }

CUresult assayEmulatorConfigure(const AssayEmulatorOptions* options) {
  return CallUninitialized([&](State& state) {
    EmulatorSettings settings;
    const CUresult result = ReadOptions(state, options, &settings);
    if (result != CUDA_SUCCESS) return result;
    if (state.contexts.size() != 0 && (settings.arch != state.settings.arch ||
                                       settings.device_bytes != state.settings.device_bytes)) {
      return state.Fail(CUDA_ERROR_ILLEGAL_STATE,
                        "arch and device memory cannot change while a context exists; destroy it");
    }
    state.settings = settings;
    state.launches = 0;
    return CUDA_SUCCESS;
  });
}

CUresult assayEmulatorSetBuffer(CUdeviceptr address, AssayEmulatorRole role, const char* name) {
  return CallInContext([&](State& state, ContextObject& context) {
    if (role != cuda::kAssayEmulatorPlain && role != cuda::kAssayEmulatorInput) {
      return state.Fail(CUDA_ERROR_INVALID_VALUE, "no such role");
    }
    const Allocation* const allocation = context.memory->Find(address);
    if (allocation == nullptr || allocation->freed || allocation->address != address) {
      return state.Fail(CUDA_ERROR_INVALID_VALUE, "no live allocation begins at the address");
    }
    absl::Status status = context.memory->SetRole(
        address, role == cuda::kAssayEmulatorInput ? Role::kInput : Role::kPlain);
    if (status.ok() && name != nullptr) {
      status = context.memory->SetName(
          address, PrintableLine(std::string_view(name, strnlen(name, kBufferNameBytesMax))));
    }
    return status.ok() ? CUDA_SUCCESS : state.Fail(status);
  });
}

CUresult assayEmulatorPoison(CUdeviceptr address, size_t bytes) {
  return CallInContext([&](State& state, ContextObject& context) {
    if (bytes == 0) return CUDA_SUCCESS;
    const absl::Status status = context.memory->SetInitialized(address, bytes, false);
    return status.ok() ? CUDA_SUCCESS : state.Fail(status);
  });
}

CUresult assayEmulatorFindUninitialized(CUdeviceptr address, size_t bytes, uint64_t* count,
                                        uint64_t* first) {
  return CallInContext([&](State& state, ContextObject& context) {
    if (count == nullptr || first == nullptr) {
      return state.Fail(CUDA_ERROR_INVALID_VALUE, "nowhere to write the answer");
    }
    const absl::Status status = CountUninitialized(*context.memory, address, bytes, count, first);
    return status.ok() ? CUDA_SUCCESS : state.Fail(status);
  });
}

CUresult assayEmulatorTakeReport(AssayEmulatorReportCallback callback, void* user) {
  ReportSink sink;
  const CUresult result = CallUninitialized([&](State& state) {
    if (callback == nullptr) return state.Fail(CUDA_ERROR_INVALID_VALUE, "nobody takes the report");
    std::swap(sink, state.report);
    return CUDA_SUCCESS;
  });
  if (result != CUDA_SUCCESS) return result;
  try {
    // Outside the lock, which the callback may want.
    Deliver(sink, callback, user);
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return CUDA_SUCCESS;
}

CUresult assayEmulatorResetVariables(CUmodule module) {
  return CallInContext([&](State& state, ContextObject& context) {
    ModuleObject* const object = state.modules.Find(module);
    if (object == nullptr || object->context != &context) {
      return state.Fail(CUDA_ERROR_INVALID_HANDLE, "no such module in the current context");
    }
    const absl::Status status = object->loaded->ResetVariables();
    return status.ok() ? CUDA_SUCCESS : state.Fail(status);
  });
}

}  // namespace assay::emulator::exported
