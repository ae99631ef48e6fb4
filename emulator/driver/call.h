// What every exported function begins with: the lock, the checks that come before all others, and a
// wall against exceptions.
//
//   CUresult cuSomething(...) { return CallInContext([&](State& state, ContextObject& context) {
//   ...; }); }
#ifndef ASSAY_EMULATOR_DRIVER_CALL_H_
#define ASSAY_EMULATOR_DRIVER_CALL_H_

#include <new>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "base/cuda/driver_abi.h"
#include "base/cuda/driver_functions.h"
#include "base/cuda/emulator_abi.h"
#include "emulator/driver/state.h"

namespace assay::emulator {

// What is exported, with C linkage: a definition whose parameters differ from the ABI's does not
// compile.
namespace exported {

using cuda::AssayEmulatorFault;
using cuda::AssayEmulatorOptions;
using cuda::AssayEmulatorReport;
using cuda::AssayEmulatorReportCallback;
using cuda::AssayEmulatorRole;
using cuda::CUarray;
using cuda::CUcontext;
using cuda::CUctxCreateParams;
using cuda::CUDA_MEMCPY2D;
using cuda::CUdevice;
using cuda::CUdevice_attribute;
using cuda::CUdeviceptr;
using cuda::CUdriverProcAddressQueryResult;
using cuda::CUevent;
using cuda::CUfunc_cache;
using cuda::CUfunction;
using cuda::CUfunction_attribute;
using cuda::CUgraph;
using cuda::CUhostFn;
using cuda::CUjit_option;
using cuda::CUkernel;
using cuda::CUlaunchAttribute;
using cuda::CUlaunchConfig;
using cuda::CUlibrary;
using cuda::CUlibraryOption;
using cuda::CUlimit;
using cuda::CUmodule;
using cuda::CUmoduleLoadingMode;
using cuda::CUoccupancyB2DSize;
using cuda::CUpointer_attribute;
using cuda::CUresult;
using cuda::CUsharedconfig;
using cuda::CUstream;
using cuda::CUstreamCallback;
using cuda::CUstreamCaptureMode;
using cuda::CUstreamCaptureStatus;
using cuda::CUuuid;
using enum cuda::CUresult;

#define ASSAY_CUDA_DECLARE(name, symbol, since, parameters) \
  extern "C" __attribute__((visibility("default"))) CUresult symbol parameters;
ASSAY_CUDA_REQUIRED_FUNCTIONS(ASSAY_CUDA_DECLARE)
ASSAY_CUDA_OPTIONAL_FUNCTIONS(ASSAY_CUDA_DECLARE)
ASSAY_CUDA_OTHER_FUNCTIONS(ASSAY_CUDA_DECLARE)
#undef ASSAY_CUDA_DECLARE
#define ASSAY_EMULATOR_DECLARE(name, result, parameters) \
  extern "C" __attribute__((visibility("default"))) result name parameters;
ASSAY_EMULATOR_FUNCTIONS(ASSAY_EMULATOR_DECLARE)
#undef ASSAY_EMULATOR_DECLARE

}  // namespace exported

// body(state) under the lock. Nothing is thrown across it.
template <typename Body>
cuda::CUresult CallUninitialized(Body&& body) noexcept {
  try {
    State& state = State::Get();
    const absl::MutexLock lock(&state.mutex);
    return body(state);
  } catch (const std::bad_alloc&) {
    return cuda::CUDA_ERROR_OUT_OF_MEMORY;
  } catch (...) {
    return cuda::CUDA_ERROR_UNKNOWN;
  }
}

// After cuInit.
template <typename Body>
cuda::CUresult Call(Body&& body) noexcept {
  return CallUninitialized([&](State& state) {
    if (!state.initialized) return cuda::CUDA_ERROR_NOT_INITIALIZED;
    return body(state);
  });
}

// body(state, context) with the current context, unless a fault has ended its use.
template <typename Body>
cuda::CUresult CallInContext(Body&& body) noexcept {
  return Call([&](State& state) {
    const auto& stack = ThreadContexts();
    if (stack.empty() || stack.back() == nullptr) {
      return state.Fail(cuda::CUDA_ERROR_INVALID_CONTEXT,
                        "no context is current on this thread; make one with cuCtxCreate, or "
                        "retain the primary one and make it current");
    }
    ContextObject* const context = state.contexts.Find(stack.back());
    if (context == nullptr) {
      return state.Fail(cuda::CUDA_ERROR_CONTEXT_IS_DESTROYED,
                        "the context that is current on this thread was destroyed");
    }
    if (context->sticky != cuda::CUDA_SUCCESS) return context->sticky;
    return body(state, *context);
  });
}

// Whether `stream` may be used in `context`: one of its own, or one that every context has.
inline bool IsStream(const State& state, const ContextObject& context, cuda::CUstream stream) {
  const auto number = reinterpret_cast<uintptr_t>(stream);
  if (number == 0 || number == cuda::kStreamLegacy || number == cuda::kStreamPerThread) return true;
  const StreamObject* const object = state.streams.Find(stream);
  return object != nullptr && object->context == &context;
}

// As CallInContext, for work that is put in a stream.
template <typename Body>
cuda::CUresult CallInStream(cuda::CUstream stream, Body&& body) noexcept {
  return CallInContext([&](State& state, ContextObject& context) {
    if (!IsStream(state, context, stream)) {
      return state.Fail(cuda::CUDA_ERROR_INVALID_HANDLE, "no such stream in the current context");
    }
    return body(state, context);
  });
}

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_DRIVER_CALL_H_
