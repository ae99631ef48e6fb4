// Attributes of kernels and how many of their blocks fit on a multiprocessor.
#include <algorithm>
#include <string>

#include "emulator/driver/call.h"
#include "emulator/driver/device_model.h"
#include "emulator/driver/modules.h"

namespace assay::emulator::exported {
namespace {

// body(state, function) for a function of the current context, with somewhere to write.
template <typename Body>
CUresult CallForFunction(CUfunction function, const void* out, Body&& body) {
  return CallInContext([&](State& state, ContextObject& context) {
    if (out == nullptr) return state.Fail(CUDA_ERROR_INVALID_VALUE, "nowhere to write the answer");
    FunctionObject* object = nullptr;
    const CUresult result = ResolveFunction(state, context, function, &object);
    return result == CUDA_SUCCESS ? body(state, *object) : result;
  });
}

CUresult NoAttribute(State& state, CUfunction_attribute attribute) {
  return state.Fail(CUDA_ERROR_INVALID_VALUE, "no function attribute " +
                                                  std::to_string(static_cast<int>(attribute)) +
                                                  ", or it cannot be set");
}

CUresult SetDynamicSharedMax(State& state, FunctionObject& function, int value) {
  const int most =
      state.model().shared_bytes_optin - static_cast<int>(function.program->shared_bytes);
  if (value < 0 || value > most) {
    return state.Fail(CUDA_ERROR_INVALID_VALUE,
                      "kernel " + function.name + " can have up to " + std::to_string(most) +
                          " bytes of dynamic shared memory on the emulated sm_" +
                          std::to_string(state.model().arch) + ", not " + std::to_string(value));
  }
  function.dynamic_shared_max = value;
  return CUDA_SUCCESS;
}

CUresult CountBlocks(State& state, const FunctionObject& function, int block_threads,
                     size_t dynamic_shared_bytes, int* blocks) {
  if (block_threads <= 0) {
    return state.Fail(CUDA_ERROR_INVALID_VALUE, "a block has at least one thread");
  }
  const bool fits = static_cast<uint32_t>(block_threads) <= function.program->max_threads &&
                    dynamic_shared_bytes <= static_cast<size_t>(function.dynamic_shared_max);
  *blocks = fits ? BlocksPerMultiprocessor(state.model(), static_cast<uint32_t>(block_threads),
                                           function.program->shared_bytes + dynamic_shared_bytes)
                 : 0;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  return CallForFunction(function, value, [&](State& state, FunctionObject& object) {
    const Program& program = *object.program;
    const Module& module = object.module->loaded->module();
    switch (attribute) {
      case cuda::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = static_cast<int>(std::min(program.max_threads, kThreadsPerBlockMax));
        break;
      case cuda::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = static_cast<int>(program.shared_bytes);
        break;
      case cuda::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *value = static_cast<int>(program.local_bytes);
        break;
      case cuda::CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = kNominalRegisters;
        break;
      case cuda::CU_FUNC_ATTRIBUTE_PTX_VERSION:
        *value = 10 * module.version_major + module.version_minor;
        break;
      case cuda::CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = state.model().arch;
        break;
      case cuda::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = object.dynamic_shared_max;
        break;
      case cuda::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *value = object.carveout;
        break;
      case cuda::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
      case cuda::CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
      case cuda::CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
      case cuda::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
      case cuda::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
      case cuda::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      case cuda::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      case cuda::CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        *value = 0;
        break;
      default:
        return NoAttribute(state, attribute);
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  return CallForFunction(function, &value, [&](State& state, FunctionObject& object) {
    switch (attribute) {
      case cuda::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        return SetDynamicSharedMax(state, object, value);
      case cuda::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        if (value < -1 || value > 100) {
          return state.Fail(CUDA_ERROR_INVALID_VALUE, "a carve-out is -1 or 0 to 100 percent");
        }
        object.carveout = value;
        return CUDA_SUCCESS;
      case cuda::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
      case cuda::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
      case cuda::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      case cuda::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      case cuda::CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        return state.Fail(CUDA_ERROR_NOT_SUPPORTED, "the emulated device has no clusters");
      default:
        return NoAttribute(state, attribute);
    }
  });
}

CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config) {
  return CallForFunction(function, &config, [&](State& state, FunctionObject&) {
    if (config < cuda::CU_FUNC_CACHE_PREFER_NONE || config > cuda::CU_FUNC_CACHE_PREFER_EQUAL) {
      return state.Fail(CUDA_ERROR_INVALID_VALUE, "no such cache configuration");
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncSetSharedMemConfig(CUfunction function, CUsharedconfig config) {
  return CallForFunction(function, &config, [&](State& state, FunctionObject&) {
    if (config < cuda::CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE ||
        config > cuda::CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE) {
      return state.Fail(CUDA_ERROR_INVALID_VALUE, "no such shared memory configuration");
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncGetModule(CUmodule* module, CUfunction function) {
  return CallForFunction(function, module, [&](State&, FunctionObject& object) {
    *module = object.module->handle;
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncGetName(const char** name, CUfunction function) {
  return CallForFunction(function, name, [&](State&, FunctionObject& object) {
    *name = object.name.c_str();
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* bytes) {
  return CallForFunction(function, offset, [&](State& state, FunctionObject& object) {
    const std::vector<KernelParameter>& parameters = object.program->parameters;
    if (index >= parameters.size()) {
      return state.Fail(
          CUDA_ERROR_INVALID_VALUE,
          "kernel " + object.name + " has " + std::to_string(parameters.size()) + " parameters");
    }
    *offset = parameters[index].offset;
    if (bytes != nullptr) *bytes = parameters[index].bytes;
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncIsLoaded(int* loading_state, CUfunction function) {
  return CallForFunction(function, loading_state, [&](State&, FunctionObject&) {
    *loading_state = 1;
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncLoad(CUfunction function) {
  return CallForFunction(function, &function, [](State&, FunctionObject&) { return CUDA_SUCCESS; });
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function,
                                                     int block_threads,
                                                     size_t dynamic_shared_bytes) {
  return CallForFunction(function, blocks, [&](State& state, FunctionObject& object) {
    return CountBlocks(state, object, block_threads, dynamic_shared_bytes, blocks);
  });
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function,
                                                              int block_threads,
                                                              size_t dynamic_shared_bytes,
                                                              unsigned int flags) {
  if (flags > 1) return CUDA_ERROR_INVALID_VALUE;
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_threads,
                                                     dynamic_shared_bytes);
}

CUresult cuOccupancyMaxPotentialBlockSize(int* grid_least, int* block_threads, CUfunction function,
                                          CUoccupancyB2DSize shared_bytes_of,
                                          size_t dynamic_shared_bytes, int threads_max) {
  if (grid_least == nullptr || block_threads == nullptr || threads_max < 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  int most = 0;
  const CUresult result =
      cuFuncGetAttribute(&most, cuda::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function);
  if (result != CUDA_SUCCESS) return result;
  if (threads_max > 0) most = std::min(most, threads_max);
  int best_threads = 0;
  *grid_least = 0;
  *block_threads = 0;
  // The caller's function runs between the calls, not under the lock.
  for (int threads = most; threads > 0; threads = (threads - 1) / kWarpSize * kWarpSize) {
    const size_t shared =
        shared_bytes_of == nullptr ? dynamic_shared_bytes : shared_bytes_of(threads);
    int blocks = 0;
    const CUresult counted =
        cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, threads, shared);
    if (counted != CUDA_SUCCESS) return counted;
    if (blocks * threads > best_threads) {
      best_threads = blocks * threads;
      *block_threads = threads;
      *grid_least = blocks * kMultiprocessors;
    }
  }
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid_least, int* block_threads,
                                                   CUfunction function,
                                                   CUoccupancyB2DSize shared_bytes_of,
                                                   size_t dynamic_shared_bytes, int threads_max,
                                                   unsigned int flags) {
  if (flags > 1) return CUDA_ERROR_INVALID_VALUE;
  return cuOccupancyMaxPotentialBlockSize(grid_least, block_threads, function, shared_bytes_of,
                                          dynamic_shared_bytes, threads_max);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, CUfunction function, int blocks,
                                                 int block_threads) {
  return CallForFunction(function, bytes, [&](State& state, FunctionObject& object) {
    if (blocks <= 0 || block_threads <= 0) {
      return state.Fail(CUDA_ERROR_INVALID_VALUE, "blocks and threads are positive");
    }
    const DeviceModel& model = state.model();
    const int taken = static_cast<int>(object.program->shared_bytes) + model.shared_bytes_reserved;
    const int each = model.shared_bytes_per_multiprocessor / blocks - taken;
    *bytes = static_cast<size_t>(std::clamp(each, 0, object.dynamic_shared_max));
    return CUDA_SUCCESS;
  });
}

}  // namespace assay::emulator::exported
