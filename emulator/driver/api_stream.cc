// Streams and events. Work is done when the call that submits it returns, so that every stream is
// always idle.
#include <algorithm>
#include <memory>
#include <utility>

#include "emulator/driver/call.h"

namespace assay::emulator::exported {
namespace {

CUresult NoRoom(State& state) {
  return state.Fail(CUDA_ERROR_INVALID_VALUE, "nowhere to write the answer");
}

CUresult NoEvent(State& state) {
  return state.Fail(CUDA_ERROR_INVALID_HANDLE, "no such event in the current context");
}

bool IsEvent(const State& state, const ContextObject& context, CUevent event) {
  const EventObject* const object = state.events.Find(event);
  return object != nullptr && object->context == &context;
}

CUresult NoCapture(State& state) {
  return state.Fail(CUDA_ERROR_NOT_SUPPORTED, "the emulated driver has no graphs");
}

// body(stream) with the object of a stream; nullptr for one that every context has.
template <typename Body>
CUresult CallForStream(CUstream stream, const void* out, Body&& body) {
  return CallInStream(stream, [&](State& state, ContextObject& context) {
    if (out == nullptr) return NoRoom(state);
    return body(state, context, state.streams.Find(stream));
  });
}

}  // namespace

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int priority) {
  return CallInContext([&](State& state, ContextObject& context) {
    if (stream == nullptr) return NoRoom(state);
    if (flags > cuda::CU_STREAM_NON_BLOCKING) {
      return state.Fail(CUDA_ERROR_INVALID_VALUE, "unknown stream flags");
    }
    if (state.streams.size() >= kObjectsMax) {
      return state.Fail(CUDA_ERROR_OUT_OF_MEMORY, "too many streams; destroy some");
    }
    auto object = std::make_unique<StreamObject>();
    object->context = &context;
    object->flags = flags;
    object->priority = std::clamp(priority, kPriorityGreatest, kPriorityLeast);
    *stream = state.NextHandle<CUstream>();
    object->id = state.handles;
    state.streams.Add(*stream, std::move(object));
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamCreate(CUstream* stream, unsigned int flags) {
  return cuStreamCreateWithPriority(stream, flags, 0);
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  return CallInStream(stream, [&](State& state, ContextObject&) {
    if (state.streams.Remove(stream) == nullptr) {
      return state.Fail(CUDA_ERROR_INVALID_HANDLE, "a context's own streams cannot be destroyed");
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamSynchronize(CUstream stream) {
  return CallInStream(stream, [](State&, ContextObject&) { return CUDA_SUCCESS; });
}

CUresult cuStreamQuery(CUstream stream) { return cuStreamSynchronize(stream); }

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
  return CallInStream(stream, [&](State& state, ContextObject&) {
    // An event of another context is allowed here.
    return state.events.Find(event) == nullptr ? NoEvent(state) : CUDA_SUCCESS;
  });
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  return CallForStream(stream, context, [&](State&, ContextObject& current, StreamObject*) {
    *context = current.handle;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetFlags(CUstream stream, unsigned int* flags) {
  return CallForStream(stream, flags, [&](State&, ContextObject&, StreamObject* object) {
    *flags = object == nullptr ? cuda::CU_STREAM_DEFAULT : object->flags;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetPriority(CUstream stream, int* priority) {
  return CallForStream(stream, priority, [&](State&, ContextObject&, StreamObject* object) {
    *priority = object == nullptr ? 0 : object->priority;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetId(CUstream stream, unsigned long long* id) {
  return CallForStream(stream, id, [&](State&, ContextObject&, StreamObject* object) {
    *id = object == nullptr ? reinterpret_cast<uintptr_t>(stream) : object->id;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return CallInStream(stream, [](State& state, ContextObject&) { return NoCapture(state); });
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return CallInStream(stream, [](State& state, ContextObject&) { return NoCapture(state); });
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return CallForStream(stream, status, [&](State&, ContextObject&, StreamObject*) {
    *status = cuda::CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* user,
                             unsigned int flags) {
  const CUresult result = CallInStream(stream, [&](State& state, ContextObject&) {
    return callback != nullptr && flags == 0
               ? CUDA_SUCCESS
               : state.Fail(CUDA_ERROR_INVALID_VALUE, "no callback, or unknown flags");
  });
  // Outside the lock, which the callback may want.
  if (result == CUDA_SUCCESS) callback(stream, CUDA_SUCCESS, user);
  return result;
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* user) {
  const CUresult result = CallInStream(stream, [&](State& state, ContextObject&) {
    return function != nullptr ? CUDA_SUCCESS
                               : state.Fail(CUDA_ERROR_INVALID_VALUE, "no function to call");
  });
  if (result == CUDA_SUCCESS) function(user);
  return result;
}

CUresult cuEventCreate(CUevent* event, unsigned int flags) {
  return CallInContext([&](State& state, ContextObject& context) {
    if (event == nullptr) return NoRoom(state);
    constexpr unsigned int kKnown = cuda::CU_EVENT_BLOCKING_SYNC | cuda::CU_EVENT_DISABLE_TIMING;
    if ((flags & cuda::CU_EVENT_INTERPROCESS) != 0) {
      return state.Fail(CUDA_ERROR_NOT_SUPPORTED, "the emulated driver has no interprocess events");
    }
    if ((flags & ~kKnown) != 0) {
      return state.Fail(CUDA_ERROR_INVALID_VALUE, "unknown event flags");
    }
    if (state.events.size() >= kObjectsMax) {
      return state.Fail(CUDA_ERROR_OUT_OF_MEMORY, "too many events; destroy some");
    }
    auto object = std::make_unique<EventObject>();
    object->context = &context;
    object->flags = flags;
    *event = state.NextHandle<CUevent>();
    state.events.Add(*event, std::move(object));
    return CUDA_SUCCESS;
  });
}

CUresult cuEventDestroy_v2(CUevent event) {
  return CallInContext([&](State& state, ContextObject& context) {
    if (!IsEvent(state, context, event)) return NoEvent(state);
    state.events.Remove(event);
    return CUDA_SUCCESS;
  });
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  return CallInStream(stream, [&](State& state, ContextObject& context) {
    return IsEvent(state, context, event) ? CUDA_SUCCESS : NoEvent(state);
  });
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags) {
  if (flags > 1) return CUDA_ERROR_INVALID_VALUE;
  return cuEventRecord(event, stream);
}

CUresult cuEventSynchronize(CUevent event) {
  return CallInContext([&](State& state, ContextObject& context) {
    return IsEvent(state, context, event) ? CUDA_SUCCESS : NoEvent(state);
  });
}

CUresult cuEventQuery(CUevent event) { return cuEventSynchronize(event); }

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return CallInContext([&](State& state, ContextObject& context) {
    if (milliseconds == nullptr) return NoRoom(state);
    if (!IsEvent(state, context, start) || !IsEvent(state, context, end)) return NoEvent(state);
    return state.Fail(CUDA_ERROR_NOT_SUPPORTED,
                      "an emulated run has no duration: it verifies, and is never timed");
  });
}

CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  return cuEventElapsedTime(milliseconds, start, end);
}

}  // namespace assay::emulator::exported
