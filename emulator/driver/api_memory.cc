// Device and host memory, copies and fills.
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "emulator/driver/call.h"
#include "emulator/driver/copies.h"

namespace assay::emulator::exported {
namespace {

constexpr size_t kPitchAlignment = 512;
constexpr size_t kHostBytesMax = size_t{1} << 40;

CUresult NoRoom(State& state) {
  return state.Fail(CUDA_ERROR_INVALID_VALUE, "nowhere to write the answer");
}

CUresult Allocate(State& state, ContextObject& context, size_t bytes, CUdeviceptr* address) {
  if (address == nullptr) return NoRoom(state);
  if (bytes == 0) return state.Fail(CUDA_ERROR_INVALID_VALUE, "an allocation of no bytes");
  const absl::StatusOr<uint64_t> allocated = context.memory->Allocate(bytes, "");
  if (!allocated.ok()) return state.Fail(allocated.status());
  *address = *allocated;
  return CUDA_SUCCESS;
}

CUresult AllocateHost(State& state, ContextObject& context, size_t bytes, unsigned int flags,
                      void** host) {
  constexpr unsigned int kKnown = cuda::CU_MEMHOSTALLOC_PORTABLE | cuda::CU_MEMHOSTALLOC_DEVICEMAP |
                                  cuda::CU_MEMHOSTALLOC_WRITECOMBINED;
  if (host == nullptr) return NoRoom(state);
  if (bytes == 0 || (flags & ~kKnown) != 0) {
    return state.Fail(CUDA_ERROR_INVALID_VALUE, "no bytes, or unknown flags, for host memory");
  }
  if ((flags & cuda::CU_MEMHOSTALLOC_DEVICEMAP) != 0) {
    return state.Fail(CUDA_ERROR_NOT_SUPPORTED, "emulated kernels cannot reach host memory");
  }
  if (bytes > kHostBytesMax) return state.Fail(CUDA_ERROR_OUT_OF_MEMORY, "too much host memory");
  HostBlock block;
  block.storage = std::make_unique_for_overwrite<std::byte[]>(bytes);
  block.bytes = bytes;
  block.flags = flags;
  *host = block.storage.get();
  context.host_blocks.emplace(*host, std::move(block));
  return CUDA_SUCCESS;
}

// In a stream or without one: work is done when the call returns either way.
CUresult Copy(CUstream stream, const CopyEnd& to, const CopyEnd& from, size_t bytes) {
  return CallInStream(stream, [&](State& state, ContextObject& context) {
    const absl::Status status = CopyBytes(context.memory.get(), to, from, bytes);
    return status.ok() ? CUDA_SUCCESS : state.Fail(status);
  });
}

CopyEnd Device(CUdeviceptr address) {
  CopyEnd end;
  end.device = address;
  return end;
}

CUresult CopyIn(CUstream stream, CUdeviceptr to, const void* from, size_t bytes) {
  CopyEnd source;
  // Only read: it is the source.
  source.host = static_cast<std::byte*>(const_cast<void*>(from));
  if (from == nullptr && bytes != 0) return CUDA_ERROR_INVALID_VALUE;
  return Copy(stream, Device(to), source, bytes);
}

CUresult CopyOut(CUstream stream, void* to, CUdeviceptr from, size_t bytes) {
  CopyEnd target;
  target.host = static_cast<std::byte*>(to);
  if (to == nullptr && bytes != 0) return CUDA_ERROR_INVALID_VALUE;
  return Copy(stream, target, Device(from), bytes);
}

CUresult CopyUnified(CUstream stream, CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return CallInStream(stream, [&](State& state, ContextObject& context) {
    const absl::Status status = CopyBytes(context.memory.get(), UnifiedEnd(*context.memory, to),
                                          UnifiedEnd(*context.memory, from), bytes);
    return status.ok() ? CUDA_SUCCESS : state.Fail(status);
  });
}

CUresult Fill(CUstream stream, CUdeviceptr to, uint32_t value, int width, size_t count) {
  return CallInStream(stream, [&](State& state, ContextObject& context) {
    const absl::Status status = FillDevice(context.memory.get(), to, value, width, count);
    return status.ok() ? CUDA_SUCCESS : state.Fail(status);
  });
}

// One side of a two-dimensional copy.
struct Plane {
  cuda::CUmemorytype type;
  std::byte* host;
  CUdeviceptr device;
  size_t x_bytes;
  size_t y;
  size_t pitch;
};

CUresult PlaneOrigin(State& state, const DeviceMemory& memory, const Plane& plane, size_t width,
                     CopyEnd* end) {
  switch (plane.type) {
    case cuda::CU_MEMORYTYPE_HOST:
      if (plane.host == nullptr) return state.Fail(CUDA_ERROR_INVALID_VALUE, "no host memory");
      end->host = plane.host;
      break;
    case cuda::CU_MEMORYTYPE_DEVICE:
      end->device = plane.device;
      break;
    case cuda::CU_MEMORYTYPE_UNIFIED:
      *end = UnifiedEnd(memory, plane.device);
      break;
    case cuda::CU_MEMORYTYPE_ARRAY:
      return state.Fail(CUDA_ERROR_NOT_SUPPORTED, "the emulated device has no arrays");
    default:
      return state.Fail(CUDA_ERROR_INVALID_VALUE, "no such type of memory");
  }
  if (plane.pitch != 0 && (plane.pitch < width || plane.x_bytes > plane.pitch - width)) {
    return state.Fail(CUDA_ERROR_INVALID_VALUE, "a row is wider than its pitch");
  }
  return CUDA_SUCCESS;
}

CopyEnd Row(const CopyEnd& origin, const Plane& plane, size_t width, size_t row) {
  const size_t pitch = plane.pitch != 0 ? plane.pitch : width;
  const size_t offset = plane.x_bytes + (plane.y + row) * pitch;
  CopyEnd end = origin;
  if (end.host != nullptr) {
    end.host += offset;
  } else {
    end.device += offset;
  }
  return end;
}

CUresult Copy2D(CUstream stream, const CUDA_MEMCPY2D* copy) {
  return CallInStream(stream, [&](State& state, ContextObject& context) {
    if (copy == nullptr) return state.Fail(CUDA_ERROR_INVALID_VALUE, "no copy is described");
    // The source's host memory is only read.
    const Plane from = {
        copy->srcMemoryType, static_cast<std::byte*>(const_cast<void*>(copy->srcHost)),
        copy->srcDevice,     copy->srcXInBytes,
        copy->srcY,          copy->srcPitch};
    const Plane to = {copy->dstMemoryType, static_cast<std::byte*>(copy->dstHost),
                      copy->dstDevice,     copy->dstXInBytes,
                      copy->dstY,          copy->dstPitch};
    const size_t width = copy->WidthInBytes;
    CopyEnd source;
    CopyEnd target;
    CUresult result = PlaneOrigin(state, *context.memory, from, width, &source);
    if (result == CUDA_SUCCESS) result = PlaneOrigin(state, *context.memory, to, width, &target);
    if (result != CUDA_SUCCESS || width == 0) return result;
    for (size_t row = 0; row < copy->Height; ++row) {
      const absl::Status status = CopyBytes(context.memory.get(), Row(target, to, width, row),
                                            Row(source, from, width, row), width);
      if (!status.ok()) return state.Fail(status);
    }
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
  return CallInContext([&](State& state, ContextObject& context) {
    if (free_bytes == nullptr || total_bytes == nullptr) return NoRoom(state);
    *total_bytes = context.memory->bytes_total();
    *free_bytes = *total_bytes - context.memory->bytes_in_use();
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  return CallInContext([&](State& state, ContextObject& context) {
    return Allocate(state, context, bytes, address);
  });
}

CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
  return CallInStream(stream, [&](State& state, ContextObject& context) {
    return Allocate(state, context, bytes, address);
  });
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                            unsigned int element_bytes) {
  return CallInContext([&](State& state, ContextObject& context) {
    if (pitch == nullptr) return NoRoom(state);
    if (element_bytes != 4 && element_bytes != 8 && element_bytes != 16) {
      return state.Fail(CUDA_ERROR_INVALID_VALUE, "elements have 4, 8 or 16 bytes");
    }
    if (width > kHostBytesMax || height > kHostBytesMax) {
      return state.Fail(CUDA_ERROR_OUT_OF_MEMORY, "too much device memory");
    }
    const size_t row = (width + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
    if (height != 0 && row > kHostBytesMax / height) {
      return state.Fail(CUDA_ERROR_OUT_OF_MEMORY, "too much device memory");
    }
    const CUresult result = Allocate(state, context, row * height, address);
    if (result == CUDA_SUCCESS) *pitch = row;
    return result;
  });
}

CUresult cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned int flags) {
  return CallInContext([&](State& state, ContextObject&) {
    return state.Fail(CUDA_ERROR_NOT_SUPPORTED,
                      "the emulated device has no managed memory; use cuMemAlloc and copies");
  });
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  return CallInContext([&](State& state, ContextObject& context) {
    const absl::Status status = context.memory->Free(address);
    return status.ok() ? CUDA_SUCCESS : state.Fail(status);
  });
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  return CallInStream(stream, [&](State& state, ContextObject& context) {
    const absl::Status status = context.memory->Free(address);
    return status.ok() ? CUDA_SUCCESS : state.Fail(status);
  });
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  return CallInContext([&](State& state, ContextObject& context) {
    const Allocation* const allocation = context.memory->Find(address);
    if (allocation == nullptr || allocation->freed) {
      return state.Fail(CUDA_ERROR_NOT_FOUND, "the address is in no allocation");
    }
    if (base != nullptr) *base = allocation->address;
    if (bytes != nullptr) *bytes = allocation->bytes;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemHostAlloc(void** host, size_t bytes, unsigned int flags) {
  return CallInContext([&](State& state, ContextObject& context) {
    return AllocateHost(state, context, bytes, flags, host);
  });
}

CUresult cuMemAllocHost_v2(void** host, size_t bytes) { return cuMemHostAlloc(host, bytes, 0); }

CUresult cuMemFreeHost(void* host) {
  return CallInContext([&](State& state, ContextObject& context) {
    if (context.host_blocks.erase(host) == 0) {
      return state.Fail(CUDA_ERROR_INVALID_VALUE, "no such host memory in the current context");
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuMemHostGetFlags(unsigned int* flags, void* host) {
  return CallInContext([&](State& state, ContextObject& context) {
    if (flags == nullptr) return NoRoom(state);
    const auto it = context.host_blocks.find(host);
    if (it == context.host_blocks.end()) {
      return state.Fail(CUDA_ERROR_INVALID_VALUE, "no such host memory in the current context");
    }
    *flags = it->second.flags;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* address, void* host, unsigned int flags) {
  return CallInContext([&](State& state, ContextObject&) {
    return state.Fail(CUDA_ERROR_NOT_SUPPORTED, "emulated kernels cannot reach host memory");
  });
}

CUresult cuMemHostRegister_v2(void* host, size_t bytes, unsigned int flags) {
  return CallInContext([&](State& state, ContextObject&) {
    return state.Fail(CUDA_ERROR_NOT_SUPPORTED,
                      "the emulated driver registers no host memory; copies work without");
  });
}

CUresult cuMemHostUnregister(void* host) {
  return CallInContext([&](State& state, ContextObject&) {
    return state.Fail(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "this host memory is not registered");
  });
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  return CopyIn(nullptr, to, from, bytes);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return CopyIn(stream, to, from, bytes);
}

CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  return CopyOut(nullptr, to, from, bytes);
}

CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return CopyOut(stream, to, from, bytes);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return Copy(nullptr, Device(to), Device(from), bytes);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return Copy(stream, Device(to), Device(from), bytes);
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return CopyUnified(nullptr, to, from, bytes);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return CopyUnified(stream, to, from, bytes);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) { return Copy2D(nullptr, copy); }

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) { return Copy2D(nullptr, copy); }

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return Copy2D(stream, copy);
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
  return Fill(nullptr, to, value, 1, count);
}

CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count) {
  return Fill(nullptr, to, value, 2, count);
}

CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t count) {
  return Fill(nullptr, to, value, 4, count);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  return Fill(stream, to, value, 1, count);
}

CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  return Fill(stream, to, value, 2, count);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream) {
  return Fill(stream, to, value, 4, count);
}

}  // namespace assay::emulator::exported
