// Initialisation, version, error names and the device.
#include <algorithm>
#include <cstring>
#include <string>

#include "emulator/driver/call.h"
#include "emulator/driver/device_model.h"
#include "emulator/driver/results.h"

namespace assay::emulator::exported {
namespace {

CUresult CheckDevice(State& state, CUdevice device) {
  if (device == 0) return CUDA_SUCCESS;
  return state.Fail(CUDA_ERROR_INVALID_DEVICE, "the emulated driver has one device, number 0");
}

// body(state) after cuInit, for device 0, with somewhere to write.
template <typename Body>
CUresult CallForDevice(CUdevice device, const void* out, Body&& body) {
  return Call([&](State& state) {
    if (out == nullptr) return state.Fail(CUDA_ERROR_INVALID_VALUE, "nowhere to write the answer");
    const CUresult result = CheckDevice(state, device);
    return result == CUDA_SUCCESS ? body(state) : result;
  });
}

void WriteUuid(const DeviceModel& model, CUuuid* uuid) {
  std::memset(uuid->bytes, 0, sizeof uuid->bytes);
  const std::string text = "assay emulated" + std::to_string(model.arch);
  std::memcpy(uuid->bytes, text.data(), std::min(text.size(), sizeof uuid->bytes));
}

}  // namespace

CUresult cuInit(unsigned int flags) {
  return CallUninitialized([&](State& state) {
    if (flags != 0) return state.Fail(CUDA_ERROR_INVALID_VALUE, "cuInit takes no flags");
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
        !__builtin_cpu_supports("f16c")) {
      return state.Fail(CUDA_ERROR_NOT_SUPPORTED,
                        "the emulated device needs a processor with AVX2, FMA and F16C");
    }
    state.initialized = true;
    return CUDA_SUCCESS;
  });
}

CUresult cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = kDriverVersion;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char** name) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *name = ResultName(error);
  return *name == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *text = ResultText(error);
  return *text == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  return CallForDevice(0, count, [&](State&) {
    *count = 1;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return CallForDevice(ordinal, device, [&](State&) {
    *device = ordinal;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetName(char* name, int bytes, CUdevice device) {
  return CallForDevice(device, name, [&](State& state) {
    if (bytes <= 0) return state.Fail(CUDA_ERROR_INVALID_VALUE, "no room for the device's name");
    const std::string text = DeviceName(state.model());
    const size_t taken = std::min(text.size(), static_cast<size_t>(bytes) - 1);
    std::memcpy(name, text.data(), taken);
    name[taken] = 0;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  return CallForDevice(device, uuid, [&](State& state) {
    WriteUuid(state.model(), uuid);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) { return cuDeviceGetUuid_v2(uuid, device); }

CUresult cuDeviceGetPCIBusId(char* id, int bytes, CUdevice device) {
  return CallForDevice(device, id, [&](State& state) {
    return state.Fail(CUDA_ERROR_NOT_SUPPORTED, "an emulated device is on no bus");
  });
}

CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* id) {
  return CallForDevice(0, device, [&](State& state) {
    return state.Fail(CUDA_ERROR_INVALID_VALUE, "an emulated device is on no bus");
  });
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  return CallForDevice(device, bytes, [&](State& state) {
    *bytes = state.settings.device_bytes;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return CallForDevice(device, value, [&](State& state) {
    if (DeviceAttribute(state.model(), attribute, value)) return CUDA_SUCCESS;
    return state.Fail(CUDA_ERROR_INVALID_VALUE,
                      "no device attribute " + std::to_string(static_cast<int>(attribute)));
  });
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  return CallForDevice(device, major, [&](State& state) {
    if (minor == nullptr) return state.Fail(CUDA_ERROR_INVALID_VALUE, "nowhere to write minor");
    *major = state.model().arch / 10;
    *minor = state.model().arch % 10;
    return CUDA_SUCCESS;
  });
}

CUresult cuGetExportTable(const void** table, const CUuuid* id) {
  return CallUninitialized([&](State& state) {
    return state.Fail(CUDA_ERROR_NOT_SUPPORTED,
                      "the emulated driver has no export tables: programs on the CUDA runtime "
                      "library cannot use it");
  });
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return CallForDevice(device, context, [&](State& state) {
    if (state.primary == nullptr) {
      const CUresult result = state.MakeContext(state.primary_flags, &state.primary);
      if (result != CUDA_SUCCESS) return result;
    }
    ++state.primary_count;
    *context = state.primary;
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return CallForDevice(device, &device, [&](State& state) {
    if (state.primary_count == 0) {
      return state.Fail(CUDA_ERROR_INVALID_CONTEXT, "the primary context is not retained");
    }
    if (--state.primary_count == 0) {
      state.DestroyContext(state.primary);
      state.primary = nullptr;
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return CallForDevice(device, &device, [&](State& state) {
    ContextObject* const context = state.contexts.Find(state.primary);
    return context == nullptr ? CUDA_SUCCESS : state.ResetContext(context);
  });
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags) {
  return CallForDevice(device, &device, [&](State& state) {
    if ((flags & ~cuda::CU_CTX_FLAGS_MASK) != 0) {
      return state.Fail(CUDA_ERROR_INVALID_VALUE, "unknown context flags");
    }
    state.primary_flags = flags;
    ContextObject* const context = state.contexts.Find(state.primary);
    if (context != nullptr) context->flags = flags;
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active) {
  return CallForDevice(device, flags, [&](State& state) {
    if (active == nullptr) return state.Fail(CUDA_ERROR_INVALID_VALUE, "nowhere to write active");
    *flags = state.primary_flags;
    *active = state.primary != nullptr ? 1 : 0;
    return CUDA_SUCCESS;
  });
}

}  // namespace assay::emulator::exported
