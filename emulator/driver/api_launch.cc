// Launches: checks what a device checks, packs the arguments, runs the kernel to its end and keeps
// what was found.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "emulator/driver/call.h"
#include "emulator/driver/device_model.h"
#include "emulator/driver/modules.h"
#include "emulator/driver/results.h"

namespace assay::emulator::exported {
namespace {

constexpr int kExtraEntriesMax = 16;
constexpr unsigned int kLaunchAttributesMax = 64;

struct Request {
  CUfunction function = nullptr;
  Dim3 grid;
  Dim3 block;
  uint32_t dynamic_shared_bytes = 0;
  CUstream stream = nullptr;
  void** arguments = nullptr;
  void** extra = nullptr;
  bool cooperative = false;
};

std::string Text(const Dim3& size) { return absl::StrCat(size.x, "x", size.y, "x", size.z); }

CUresult CheckGridAndBlock(State& state, const Request& request) {
  const Dim3& grid = request.grid;
  const Dim3& block = request.block;
  if (grid.x < 1 || grid.y < 1 || grid.z < 1 || grid.x > kGridXMax || grid.y > kGridYZMax ||
      grid.z > kGridYZMax) {
    return state.Fail(CUDA_ERROR_INVALID_VALUE,
                      absl::StrCat("a grid of ", Text(grid), " blocks; each extent is at least 1 ",
                                   "and at most ", kGridXMax, ", ", kGridYZMax, ", ", kGridYZMax));
  }
  if (block.x < 1 || block.y < 1 || block.z < 1 || block.x > kThreadsPerBlockMax ||
      block.y > kThreadsPerBlockMax || block.z > kBlockZMax ||
      block.Count() > kThreadsPerBlockMax) {
    return state.Fail(
        CUDA_ERROR_INVALID_VALUE,
        absl::StrCat("a block of ", Text(block), " threads; each extent is at least ",
                     "1 and at most ", kThreadsPerBlockMax, ", ", kThreadsPerBlockMax, ", ",
                     kBlockZMax, ", and together at most ", kThreadsPerBlockMax));
  }
  return CUDA_SUCCESS;
}

CUresult CheckAgainstKernel(State& state, const Request& request, const FunctionObject& function) {
  const Program& program = *function.program;
  const Dim3& block = request.block;
  if (block.Count() > program.max_threads) {
    return state.Fail(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
                      absl::StrCat("a block of ", block.Count(), " threads; kernel ", function.name,
                                   " was built for at most ", program.max_threads));
  }
  const uint32_t* const required = program.required_threads;
  if (required[0] != 0 &&
      (block.x != required[0] || block.y != required[1] || block.z != required[2])) {
    return state.Fail(
        CUDA_ERROR_INVALID_VALUE,
        absl::StrCat("a block of ", Text(block), " threads; kernel ", function.name, " requires ",
                     Text(Dim3{required[0], required[1], required[2]})));
  }
  if (request.dynamic_shared_bytes > static_cast<uint32_t>(function.dynamic_shared_max)) {
    return state.Fail(
        CUDA_ERROR_INVALID_VALUE,
        absl::StrCat(request.dynamic_shared_bytes, " bytes of dynamic shared memory for kernel ",
                     function.name, ", which may have ", function.dynamic_shared_max,
                     "; raise CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, up to ",
                     state.model().shared_bytes_optin - static_cast<int>(program.shared_bytes)));
  }
  if (request.cooperative) {
    const uint64_t each = static_cast<uint64_t>(
        BlocksPerMultiprocessor(state.model(), static_cast<uint32_t>(block.Count()),
                                program.shared_bytes + request.dynamic_shared_bytes));
    if (request.grid.Count() > each * kMultiprocessors) {
      return state.Fail(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
                        absl::StrCat("a cooperative launch of ", request.grid.Count(),
                                     " blocks; the emulated device holds ", each, " of them on ",
                                     "each of ", kMultiprocessors, " multiprocessors"));
    }
  }
  return CUDA_SUCCESS;
}

// One argument a parameter, each a pointer to the value.
CUresult PackArguments(State& state, const FunctionObject& function, void** arguments,
                       std::vector<std::byte>* buffer) {
  const std::vector<KernelParameter>& parameters = function.program->parameters;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (arguments == nullptr || arguments[i] == nullptr) {
      return state.Fail(CUDA_ERROR_INVALID_VALUE,
                        absl::StrCat("no argument for parameter ", i, " (", parameters[i].name,
                                     ") of kernel ", function.name));
    }
    std::memcpy(buffer->data() + parameters[i].offset, arguments[i], parameters[i].bytes);
  }
  return CUDA_SUCCESS;
}

// The caller has laid the buffer out.
CUresult PackExtra(State& state, const FunctionObject& function, void** extra,
                   std::vector<std::byte>* buffer) {
  const void* from = nullptr;
  const size_t* bytes = nullptr;
  for (int i = 0; extra[2 * i] != nullptr; ++i) {
    const auto key = reinterpret_cast<uintptr_t>(extra[2 * i]);
    if (key == cuda::kLaunchParamBufferPointer) {
      from = extra[2 * i + 1];
    } else if (key == cuda::kLaunchParamBufferSize) {
      bytes = static_cast<const size_t*>(extra[2 * i + 1]);
    } else {
      return state.Fail(CUDA_ERROR_INVALID_VALUE, "an unknown key among the extra options");
    }
    if (i + 1 == kExtraEntriesMax) {
      return state.Fail(CUDA_ERROR_INVALID_VALUE, "the extra options have no end");
    }
  }
  if ((from == nullptr || bytes == nullptr) && !buffer->empty()) {
    return state.Fail(
        CUDA_ERROR_INVALID_VALUE,
        absl::StrCat("no argument buffer, or no size of it, for kernel ", function.name));
  }
  if (buffer->empty()) return CUDA_SUCCESS;
  const std::vector<KernelParameter>& parameters = function.program->parameters;
  const size_t least = parameters.empty() ? 0 : parameters.back().offset + parameters.back().bytes;
  // Callers may round the size up to an alignment.
  if (*bytes < least || *bytes > buffer->size() + 16) {
    return state.Fail(CUDA_ERROR_INVALID_VALUE,
                      absl::StrCat("an argument buffer of ", *bytes, " bytes; kernel ",
                                   function.name, " has ", least, " bytes of parameters"));
  }
  std::memcpy(buffer->data(), from, std::min(*bytes, buffer->size()));
  return CUDA_SUCCESS;
}

LaunchOptions OptionsOf(State& state, const Request& request) {
  LaunchOptions options;
  options.grid = request.grid;
  options.block = request.block;
  options.dynamic_shared_bytes = request.dynamic_shared_bytes;
  options.cooperative = request.cooperative;
  const EmulatorSettings& settings = state.settings;
  if (settings.seed != 0) {
    options.seed = MixBits(settings.seed + state.launches * kGoldenGamma) | 1;
  }
  ++state.launches;
  options.threads = settings.host_threads;
  options.instructions_max = settings.instructions_max;
  options.perturb_approximations = settings.perturb_approximations;
  options.check_races = settings.check_races;
  options.clock_rate = settings.clock_rate;
  options.clock_offset = settings.clock_offset;
  options.cpu_ns_max = settings.cpu_ns_left;
  return options;
}

CUresult Run(State& state, ContextObject& context, const Request& request) {
  FunctionObject* function = nullptr;
  CUresult result = ResolveFunction(state, context, request.function, &function);
  if (result == CUDA_SUCCESS) result = CheckGridAndBlock(state, request);
  if (result == CUDA_SUCCESS) result = CheckAgainstKernel(state, request, *function);
  if (result != CUDA_SUCCESS) return result;
  if (request.arguments != nullptr && request.extra != nullptr) {
    return state.Fail(CUDA_ERROR_INVALID_VALUE, "arguments are given twice");
  }
  std::vector<std::byte> buffer(function->program->parameter_bytes);
  result = request.extra != nullptr ? PackExtra(state, *function, request.extra, &buffer)
                                    : PackArguments(state, *function, request.arguments, &buffer);
  if (result != CUDA_SUCCESS) return result;

  absl::StatusOr<LaunchResult> launched =
      Launch(*function->program, buffer, OptionsOf(state, request), context.memory.get());
  if (!launched.ok()) return state.Fail(launched.status());
  state.settings.cpu_ns_left -= launched->cpu_ns;
  if (launched->stopped) {
    context.sticky = ResultOfFaults(launched->faults);
    std::string message = absl::StrCat("kernel ", function->name, " was stopped");
    if (!launched->faults.empty()) absl::StrAppend(&message, ": ", launched->faults[0].message);
    state.Fail(context.sticky, message);
  }
  state.report.Add(*std::move(launched));
  return context.sticky;
}

// Takes over what changes a launch; refuses what the device lacks.
CUresult ReadAttribute(State& state, const CUlaunchAttribute& attribute, Request* request) {
  switch (attribute.id) {
    case cuda::CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      request->cooperative = attribute.value.cooperative != 0;
      return CUDA_SUCCESS;
    case cuda::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case cuda::CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION: {
      const cuda::CUlaunchAttributeDimension& cluster = attribute.value.clusterDim;
      if (cluster.x == 1 && cluster.y == 1 && cluster.z == 1) return CUDA_SUCCESS;
      return state.Fail(CUDA_ERROR_NOT_SUPPORTED, "the emulated device has no clusters");
    }
    case cuda::CU_LAUNCH_ATTRIBUTE_IGNORE:
    case cuda::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case cuda::CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case cuda::CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case cuda::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
    case cuda::CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case cuda::CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      return CUDA_SUCCESS;  // Hints.
    default:
      return state.Fail(
          CUDA_ERROR_NOT_SUPPORTED,
          absl::StrCat("launch attribute ", static_cast<int>(attribute.id), " is not emulated"));
  }
}

}  // namespace

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                        unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                        unsigned int block_z, unsigned int dynamic_shared_bytes, CUstream stream,
                        void** arguments, void** extra) {
  return CallInStream(stream, [&](State& state, ContextObject& context) {
    return Run(state, context,
               {function, Dim3{grid_x, grid_y, grid_z}, Dim3{block_x, block_y, block_z},
                dynamic_shared_bytes, stream, arguments, extra, false});
  });
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                   unsigned int block_z, unsigned int dynamic_shared_bytes,
                                   CUstream stream, void** arguments) {
  return CallInStream(stream, [&](State& state, ContextObject& context) {
    return Run(state, context,
               {function, Dim3{grid_x, grid_y, grid_z}, Dim3{block_x, block_y, block_z},
                dynamic_shared_bytes, stream, arguments, nullptr, true});
  });
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** arguments,
                          void** extra) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return CallInStream(config->hStream, [&](State& state, ContextObject& context) {
    if (config->numAttrs > kLaunchAttributesMax ||
        (config->numAttrs > 0 && config->attrs == nullptr)) {
      return state.Fail(CUDA_ERROR_INVALID_VALUE,
                        "launch attributes are announced but absent, or too many");
    }
    Request request = {function,
                       Dim3{config->gridDimX, config->gridDimY, config->gridDimZ},
                       Dim3{config->blockDimX, config->blockDimY, config->blockDimZ},
                       config->sharedMemBytes,
                       config->hStream,
                       arguments,
                       extra,
                       false};
    for (unsigned int i = 0; i < config->numAttrs; ++i) {
      const CUresult result = ReadAttribute(state, config->attrs[i], &request);
      if (result != CUDA_SUCCESS) return result;
    }
    return Run(state, context, request);
  });
}

}  // namespace assay::emulator::exported
