// Loading modules and launching kernels on the emulated device; what driver/ builds the CUDA API
// on.
#ifndef ASSAY_EMULATOR_ENGINE_H_
#define ASSAY_EMULATOR_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "emulator/memory/device_memory.h"
#include "emulator/program/program.h"
#include "emulator/ptx/module.h"
#include "emulator/report.h"

namespace assay::emulator {

// A module with its variables in device memory. Programs are decoded when a kernel is first asked
// for. Thread-safe after Load. Must not outlive `memory`.
class LoadedModule {
 public:
  // INVALID_ARGUMENT from the parser; RESOURCE_EXHAUSTED without memory for the variables.
  // `mma_arch` names the tensor cores to follow: 75, 80, 89 or 90.
  static absl::StatusOr<std::unique_ptr<LoadedModule>> Load(std::string_view ptx,
                                                            DeviceMemory* memory, int mma_arch);
  ~LoadedModule();

  // NOT_FOUND with the names that exist; UNIMPLEMENTED naming opcode, line and kernel for an
  // operation that is not known.
  absl::StatusOr<const Program*> Kernel(std::string_view name);
  // Address and bytes of a global or const variable.
  struct VariableAddress {
    uint64_t address = 0;
    uint64_t bytes = 0;
  };
  absl::StatusOr<VariableAddress> Variable(std::string_view name);
  // Puts every variable back to its initial image.
  absl::Status ResetVariables();
  const Module& module() const;

 private:
  struct State;
  explicit LoadedModule(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

struct LaunchOptions {
  Dim3 grid;
  Dim3 block;
  uint32_t dynamic_shared_bytes = 0;
  bool cooperative = false;
  // Decides the order of blocks, warps and lanes wherever hardware leaves it open; 0: natural
  // order.
  uint64_t seed = 0;
  int threads = 1;                                      // host threads; blocks are spread over them
  uint64_t instructions_max = uint64_t{2'000'000'000};  // warp instructions of the launch
  uint64_t output_bytes_max = 1 << 20;                  // of printf
  // Approximate functions err within their documented bounds by an amount that follows from the
  // seed.
  bool perturb_approximations = false;
  bool check_races = true;
  // Clocks show the offset and so much more for every operation that the warp executed.
  uint64_t clock_rate = 1;
  uint64_t clock_offset = 0;
  // CPU time of the launch's host threads together.
  int64_t cpu_ns_max = std::numeric_limits<int64_t>::max();
  // Of the host's memory, for what its atomics and fences order. Beyond it they count as ordering
  // everything, so that races may be missed and none is made up. A kernel whose fenced atomics go
  // to a few thousand places needs far less, and a launch's blocks may take twice as much.
  uint64_t sync_bytes_max = uint64_t{1} << 30;
};

struct LaunchResult {
  // In the order of discovery, at most kFaultsMax of different (kind, operation).
  std::vector<Fault> faults;
  bool stopped = false;  // a fault ended the launch early
  Counters counters;
  std::string output;  // of printf, block by block
  int64_t cpu_ns = 0;  // CPU time of its host threads
};
inline constexpr size_t kFaultsMax = 64;

// Limits of the emulated device, those of an sm_80 to sm_120 with the largest shared memory.
inline constexpr uint32_t kThreadsPerBlockMax = 1024;
inline constexpr uint32_t kSharedBytesDefaultMax = 48 << 10;  // static, or dynamic without opt-in
inline constexpr uint32_t kSharedBytesOptInMax = 227 << 10;
inline constexpr uint32_t kMultiprocessors =
    16;  // as the device says; blocks run as host threads come free

// Runs the launch to its end. `arguments` is the parameter buffer, laid out as Program::parameters
// says. Blocks for as long as it takes. INVALID_ARGUMENT for a grid, block, shared memory or buffer
// that the device cannot take.
absl::StatusOr<LaunchResult> Launch(const Program& program, std::span<const std::byte> arguments,
                                    const LaunchOptions& options, DeviceMemory* memory);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_ENGINE_H_
