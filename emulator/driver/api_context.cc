// Contexts: the stack of every thread, limits and flags.
#include <string>

#include "emulator/driver/call.h"

namespace assay::emulator::exported {
namespace {

// The limits that can be read and set, with what a fresh context has.
struct LimitInfo {
  cuda::CUlimit limit;
  size_t initial;
};
constexpr LimitInfo kLimits[] = {
    {cuda::CU_LIMIT_STACK_SIZE, 1024},
    {cuda::CU_LIMIT_PRINTF_FIFO_SIZE, 1 << 20},
    {cuda::CU_LIMIT_MALLOC_HEAP_SIZE, 8 << 20},
    {cuda::CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 64},
    {cuda::CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0},
};

const LimitInfo* FindLimit(cuda::CUlimit limit) {
  for (const LimitInfo& info : kLimits) {
    if (info.limit == limit) return &info;
  }
  return nullptr;
}

CUresult NoRoom(State& state) {
  return state.Fail(CUDA_ERROR_INVALID_VALUE, "nowhere to write the answer");
}

CUresult NoContext(State& state) {
  return state.Fail(CUDA_ERROR_INVALID_CONTEXT, "no such context");
}

CUresult NoLimit(State& state, cuda::CUlimit limit) {
  return state.Fail(CUDA_ERROR_UNSUPPORTED_LIMIT,
                    "the emulated device has no limit " + std::to_string(static_cast<int>(limit)));
}

CUresult CreateContext(CUcontext* context, unsigned int flags, CUdevice device, bool plain) {
  return Call([&](State& state) {
    if (context == nullptr) return NoRoom(state);
    if (device != 0) {
      return state.Fail(CUDA_ERROR_INVALID_DEVICE, "the emulated driver has one device, number 0");
    }
    if ((flags & ~cuda::CU_CTX_FLAGS_MASK) != 0) {
      return state.Fail(CUDA_ERROR_INVALID_VALUE, "unknown context flags");
    }
    if (!plain) {
      return state.Fail(CUDA_ERROR_NOT_SUPPORTED,
                        "the emulated device has no execution affinity and no graphics");
    }
    CUcontext made = nullptr;
    const CUresult result = state.MakeContext(flags, &made);
    if (result != CUDA_SUCCESS) return result;
    ThreadContexts().push_back(made);
    *context = made;
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device) {
  return CreateContext(context, flags, device, true);
}

CUresult cuCtxCreate_v3(CUcontext* context, void* affinity, int count, unsigned int flags,
                        CUdevice device) {
  return CreateContext(context, flags, device, affinity == nullptr && count == 0);
}

CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* params, unsigned int flags,
                        CUdevice device) {
  const bool plain =
      params == nullptr || (params->execAffinityParams == nullptr &&
                            params->numExecAffinityParams == 0 && params->cigParams == nullptr);
  return CreateContext(context, flags, device, plain);
}

CUresult cuCtxDestroy_v2(CUcontext context) {
  return Call([&](State& state) {
    if (state.contexts.Find(context) == nullptr) return NoContext(state);
    if (context == state.primary) {
      return state.Fail(CUDA_ERROR_INVALID_CONTEXT,
                        "the primary context is released, not destroyed: use "
                        "cuDevicePrimaryCtxRelease");
    }
    state.DestroyContext(context);
    std::vector<CUcontext>& stack = ThreadContexts();
    if (!stack.empty() && stack.back() == context) stack.pop_back();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  return Call([&](State& state) {
    if (state.contexts.Find(context) == nullptr) return NoContext(state);
    if (ThreadContexts().size() >= kObjectsMax) {
      return state.Fail(CUDA_ERROR_OUT_OF_MEMORY, "too many contexts on this thread's stack");
    }
    ThreadContexts().push_back(context);
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  return Call([&](State& state) {
    std::vector<CUcontext>& stack = ThreadContexts();
    if (stack.empty()) {
      return state.Fail(CUDA_ERROR_INVALID_CONTEXT, "no context is current on this thread");
    }
    if (context != nullptr) *context = stack.back();
    stack.pop_back();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetCurrent(CUcontext context) {
  return Call([&](State& state) {
    std::vector<CUcontext>& stack = ThreadContexts();
    if (context == nullptr) {
      if (!stack.empty()) stack.pop_back();
      return CUDA_SUCCESS;
    }
    if (state.contexts.Find(context) == nullptr) return NoContext(state);
    if (stack.empty()) {
      stack.push_back(context);
    } else {
      stack.back() = context;
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  return Call([&](State& state) {
    if (context == nullptr) return NoRoom(state);
    *context = ThreadContexts().empty() ? nullptr : ThreadContexts().back();
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetDevice(CUdevice* device) {
  return CallInContext([&](State& state, ContextObject&) {
    if (device == nullptr) return NoRoom(state);
    *device = 0;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext context) {
  if (context == nullptr) return cuCtxGetDevice(device);
  return Call([&](State& state) {
    if (device == nullptr) return NoRoom(state);
    if (state.contexts.Find(context) == nullptr) return NoContext(state);
    *device = 0;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSynchronize() {
  return CallInContext([](State&, ContextObject&) { return CUDA_SUCCESS; });
}

CUresult cuCtxSynchronize_v2(CUcontext context) {
  if (context == nullptr) return cuCtxSynchronize();
  return Call([&](State& state) {
    const ContextObject* const object = state.contexts.Find(context);
    return object == nullptr ? NoContext(state) : object->sticky;
  });
}

CUresult cuCtxGetLimit(size_t* value, cuda::CUlimit limit) {
  return CallInContext([&](State& state, ContextObject& context) {
    if (value == nullptr) return NoRoom(state);
    const LimitInfo* const info = FindLimit(limit);
    if (info == nullptr) return NoLimit(state, limit);
    const auto it = context.limits.find(limit);
    *value = it == context.limits.end() ? info->initial : it->second;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetLimit(cuda::CUlimit limit, size_t value) {
  return CallInContext([&](State& state, ContextObject& context) {
    if (FindLimit(limit) == nullptr) return NoLimit(state, limit);
    // There is no such carve-out; as on a device, asking for more gives the most there is.
    if (limit == cuda::CU_LIMIT_PERSISTING_L2_CACHE_SIZE) value = 0;
    context.limits[limit] = value;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
  return CallInContext([&](State& state, ContextObject& context) {
    if (config < cuda::CU_FUNC_CACHE_PREFER_NONE || config > cuda::CU_FUNC_CACHE_PREFER_EQUAL) {
      return state.Fail(CUDA_ERROR_INVALID_VALUE, "no such cache configuration");
    }
    context.cache_config = config;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
  return CallInContext([&](State& state, ContextObject& context) {
    if (config == nullptr) return NoRoom(state);
    *config = context.cache_config;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config) {
  return CallInContext([&](State& state, ContextObject&) {
    if (config < cuda::CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE ||
        config > cuda::CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE) {
      return state.Fail(CUDA_ERROR_INVALID_VALUE, "no such shared memory configuration");
    }
    return CUDA_SUCCESS;  // Banks have four bytes whatever is asked for, as on devices since 2014.
  });
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig* config) {
  return CallInContext([&](State& state, ContextObject&) {
    if (config == nullptr) return NoRoom(state);
    *config = cuda::CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxResetPersistingL2Cache() {
  return CallInContext([](State&, ContextObject&) { return CUDA_SUCCESS; });
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return CallInContext([&](State&, ContextObject&) {
    if (least != nullptr) *least = kPriorityLeast;
    if (greatest != nullptr) *greatest = kPriorityGreatest;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned int* version) {
  return Call([&](State& state) {
    if (version == nullptr) return NoRoom(state);
    const auto& stack = ThreadContexts();
    const CUcontext asked = context != nullptr ? context : (stack.empty() ? nullptr : stack.back());
    if (state.contexts.Find(asked) == nullptr) return NoContext(state);
    *version = 3020;  // That of cuCtxCreate_v2 and later ones.
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetFlags(unsigned int* flags) {
  return CallInContext([&](State& state, ContextObject& context) {
    if (flags == nullptr) return NoRoom(state);
    *flags = context.flags;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetFlags(unsigned int flags) {
  return CallInContext([&](State& state, ContextObject& context) {
    if ((flags & ~cuda::CU_CTX_FLAGS_MASK) != 0) {
      return state.Fail(CUDA_ERROR_INVALID_VALUE, "unknown context flags");
    }
    context.flags = flags;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetId(CUcontext context, unsigned long long* id) {
  return Call([&](State& state) {
    if (id == nullptr) return NoRoom(state);
    const auto& stack = ThreadContexts();
    const ContextObject* const object = state.contexts.Find(
        context != nullptr ? context : (stack.empty() ? nullptr : stack.back()));
    if (object == nullptr) return NoContext(state);
    *id = object->id;
    return CUDA_SUCCESS;
  });
}

}  // namespace assay::emulator::exported
