// What the emulated CUDA driver, libassay_emulated_cuda.so, exports beside the driver API: how to
// configure it, name buffers and take what it found.
//
// Plain structures of fixed layout; no exception and no C++ object crosses this border. All
// functions are thread-safe. Every structure begins with its size, which the caller (or, in a
// report, the library) sets: fields may be added at the end.
#ifndef ASSAY_BASE_CUDA_EMULATOR_ABI_H_
#define ASSAY_BASE_CUDA_EMULATOR_ABI_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/cuda/driver_abi.h"

namespace assay::cuda {

// Grows with every change that is not an addition at the end of a structure.
inline constexpr uint32_t kEmulatorAbiVersion = 1;

struct AssayEmulatorOptions {
  uint32_t struct_bytes;
  // 75, 80, 86, 87, 89, 90, 100, 103, 110, 120 or 121: the device's compute capability, limits and
  // tensor cores. 0: 80.
  uint32_t arch;
  // Decides the order of blocks, warps and lanes wherever hardware leaves it open, anew for every
  // launch, and the gaps between allocations. 0: natural order.
  uint64_t seed;
  uint32_t host_threads;            // that blocks are spread over. 0: 1
  uint32_t perturb_approximations;  // 1: approximate functions err within their documented bounds
  uint32_t check_races;             // 1: yes
  uint32_t reserved;
  uint64_t instructions_max;  // warp instructions of one launch. 0: the default, 2e9
  uint64_t device_bytes;      // of device memory of one context. 0: the default of 16 GiB
  // What a kernel's clocks show: clock_offset plus clock_rate for every operation that its warp
  // executed. A rate of 0: 1.
  uint64_t clock_rate;
  uint64_t clock_offset;
  // CPU time of the host threads of all launches from now on to the next Configure, together. 0: no
  // limit. The launch that uses it up is at fault.
  uint64_t cpu_ns_max;
};

enum AssayEmulatorRole : uint32_t {
  kAssayEmulatorPlain = 0,
  kAssayEmulatorInput = 1,  // a kernel that writes it is at fault; copies may
};

// Numbers are stable.
enum AssayEmulatorFaultKind : uint32_t {
  kAssayEmulatorFaultNone = 0,
  kAssayEmulatorFaultOutOfBounds = 1,
  kAssayEmulatorFaultMisaligned = 2,
  kAssayEmulatorFaultUseAfterFree = 3,
  kAssayEmulatorFaultUninitializedRead = 4,
  kAssayEmulatorFaultInputWritten = 5,
  kAssayEmulatorFaultSharedRace = 6,
  kAssayEmulatorFaultGlobalRace = 7,
  kAssayEmulatorFaultDivergentBarrier = 8,
  kAssayEmulatorFaultMismatchedBarrier = 9,
  kAssayEmulatorFaultDeadlock = 10,
  kAssayEmulatorFaultAbsentLane = 11,
  kAssayEmulatorFaultMissingAsyncWait = 12,
  kAssayEmulatorFaultInstructionBudget = 13,
  kAssayEmulatorFaultTrap = 14,
  kAssayEmulatorFaultAssert = 15,
  kAssayEmulatorFaultPrintfFlood = 16,
  kAssayEmulatorFaultUnsupported = 17,
  kAssayEmulatorFaultTimeBudget = 18,
};

// One fault; texts are never nullptr and live as long as the report.
struct AssayEmulatorFault {
  uint32_t struct_bytes;
  AssayEmulatorFaultKind kind;
  const char* kind_name;  // OUT_OF_BOUNDS and so on
  const char* kernel;
  const char* opcode;
  const char* file;  // "" when unknown
  int32_t line;      // of that file; 0: unknown
  int32_t ptx_line;
  uint32_t block[3];
  uint32_t thread[3];
  const char* space;  // "global", "shared", ...; "" for none
  uint64_t address;
  uint32_t bytes;
  uint32_t reserved;
  uint64_t count;  // how often this kind was met at this operation
  const char* message;
};

// Exact counts over the launches of the report. Bytes and operations are those that threads asked
// for.
struct AssayEmulatorCounters {
  uint64_t warp_instructions;
  uint64_t thread_instructions;
  uint64_t f16_flops;
  uint64_t f32_flops;
  uint64_t f64_flops;
  uint64_t tensor_flops;
  uint64_t special_operations;
  uint64_t integer_operations;
  uint64_t global_load_bytes;
  uint64_t global_store_bytes;
  uint64_t shared_load_bytes;
  uint64_t shared_store_bytes;
  uint64_t local_bytes;
  uint64_t atomic_operations;
  uint64_t global_sectors;
  uint64_t global_sectors_least;
  uint64_t shared_accesses;
  uint64_t shared_bank_conflicts;
  uint64_t branches;
  uint64_t divergent_branches;
  uint64_t barriers;
};

struct AssayEmulatorReport {
  uint32_t struct_bytes;
  uint32_t fault_bytes;  // distance between two faults
  const AssayEmulatorFault* faults;
  uint64_t fault_count;
  uint64_t faults_dropped;  // beyond the limit of one report
  AssayEmulatorCounters counters;
  uint64_t launches;
  uint64_t launches_stopped;  // by a fault
  const char* output;         // of printf, in the order of launches; may hold any byte
  uint64_t output_bytes;
  uint64_t output_bytes_dropped;
  const char* last_error;  // message of the last call that failed; "" when none did
};

// Called once, on the calling thread; nothing of the report may be kept.
using AssayEmulatorReportCallback = void (*)(void* user, const AssayEmulatorReport* report);

static_assert(std::is_trivial_v<AssayEmulatorOptions> && sizeof(AssayEmulatorOptions) == 72);
static_assert(std::is_trivial_v<AssayEmulatorFault> && sizeof(AssayEmulatorFault) == 112);
static_assert(std::is_trivial_v<AssayEmulatorCounters> && sizeof(AssayEmulatorCounters) == 168);
static_assert(std::is_trivial_v<AssayEmulatorReport> && sizeof(AssayEmulatorReport) == 248);

// X(name, result, parameters)
//
// Version: kEmulatorAbiVersion.
// Configure: before or after cuInit. CUDA_ERROR_INVALID_VALUE for a value that cannot be,
// CUDA_ERROR_ILLEGAL_STATE for
//   another arch, or less or more device memory, while a context exists. The rest holds from the
//   next launch on, but the seed of gaps from the next context on.
// SetBuffer: name (at most 256 bytes of it) and role of the allocation of the current context that
// begins at `address`. Poison: marks bytes as holding nothing, so that a kernel may not read them
// before it wrote them. Their values stay. FindUninitialized: how many bytes of a range nobody
// wrote, and the offset of the first of them (the range's length
//   when there is none).
// TakeReport: everything since the last one, over all contexts; what it reported is forgotten.
// ResetVariables: puts every global and const variable of a module back to its initial image.
#define ASSAY_EMULATOR_FUNCTIONS(X)                                                        \
  X(assayEmulatorVersion, uint32_t, ())                                                    \
  X(assayEmulatorConfigure, CUresult, (const AssayEmulatorOptions* options))               \
  X(assayEmulatorSetBuffer, CUresult,                                                      \
    (CUdeviceptr address, AssayEmulatorRole role, const char* name))                       \
  X(assayEmulatorPoison, CUresult, (CUdeviceptr address, size_t bytes))                    \
  X(assayEmulatorFindUninitialized, CUresult,                                              \
    (CUdeviceptr address, size_t bytes, uint64_t * count, uint64_t * first))               \
  X(assayEmulatorTakeReport, CUresult, (AssayEmulatorReportCallback callback, void* user)) \
  X(assayEmulatorResetVariables, CUresult, (CUmodule module))

struct EmulatorFunctions {
#define ASSAY_EMULATOR_MEMBER(name, result, parameters) result(*name) parameters = nullptr;
  ASSAY_EMULATOR_FUNCTIONS(ASSAY_EMULATOR_MEMBER)
#undef ASSAY_EMULATOR_MEMBER
};

// As LoadDriverFunctions. A real driver has none of them: that is how to tell the two apart.
template <typename Resolve>
const char* LoadEmulatorFunctions(Resolve&& resolve, EmulatorFunctions* functions) {
  const char* missing = nullptr;
#define ASSAY_EMULATOR_LOAD(name, result, parameters)                       \
  functions->name = reinterpret_cast<result(*) parameters>(resolve(#name)); \
  if (functions->name == nullptr && missing == nullptr) missing = #name;
  ASSAY_EMULATOR_FUNCTIONS(ASSAY_EMULATOR_LOAD)
#undef ASSAY_EMULATOR_LOAD
  return missing;
}

}  // namespace assay::cuda

#endif  // ASSAY_BASE_CUDA_EMULATOR_ABI_H_
