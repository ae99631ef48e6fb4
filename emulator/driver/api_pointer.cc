// What the driver knows of a pointer.
#include <cstring>

#include "emulator/driver/call.h"

namespace assay::emulator::exported {
namespace {

// What a pointer means in a context; neither is set for one that the driver does not know.
struct Meaning {
  const Allocation* allocation = nullptr;
  const HostBlock* host = nullptr;
  uint64_t host_start = 0;
};

Meaning FindMeaning(const ContextObject& context, CUdeviceptr address) {
  Meaning meaning;
  const Allocation* const allocation = context.memory->Find(address);
  if (allocation != nullptr && !allocation->freed) meaning.allocation = allocation;
  auto it = context.host_blocks.upper_bound(reinterpret_cast<const void*>(address));
  if (it != context.host_blocks.begin()) {
    --it;
    const auto start = reinterpret_cast<uint64_t>(it->first);
    if (address - start < it->second.bytes) {
      meaning.host = &it->second;
      meaning.host_start = start;
    }
  }
  return meaning;
}

template <typename T>
CUresult Put(void* data, T value) {
  std::memcpy(data, &value, sizeof value);
  return CUDA_SUCCESS;
}

// Writes the attribute; INVALID_VALUE when a pointer of this meaning has none.
CUresult GetAttribute(const ContextObject& context, const Meaning& meaning, CUdeviceptr address,
                      CUpointer_attribute attribute, void* data) {
  const bool device = meaning.allocation != nullptr;
  if (!device && meaning.host == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case cuda::CU_POINTER_ATTRIBUTE_CONTEXT:
      return Put(data, context.handle);
    case cuda::CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return Put<unsigned int>(data,
                               device ? cuda::CU_MEMORYTYPE_DEVICE : cuda::CU_MEMORYTYPE_HOST);
    case cuda::CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return device ? Put(data, address) : CUDA_ERROR_INVALID_VALUE;
    case cuda::CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return device ? CUDA_ERROR_INVALID_VALUE : Put(data, address);
    case cuda::CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return Put<bool>(data, true);
    case cuda::CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return Put<unsigned long long>(data,
                                     device ? meaning.allocation->address : meaning.host_start);
    case cuda::CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return Put<bool>(data, false);
    case cuda::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return Put<int>(data, 0);
    case cuda::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return Put<uint64_t>(data, device ? meaning.allocation->address : meaning.host_start);
    case cuda::CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return Put<size_t>(data, device ? meaning.allocation->bytes : meaning.host->bytes);
    case cuda::CU_POINTER_ATTRIBUTE_MAPPED:
      return Put<bool>(data, device);
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

// Bytes that GetAttribute writes; 0 for an attribute that it does not know.
size_t AttributeBytes(CUpointer_attribute attribute) {
  switch (attribute) {
    case cuda::CU_POINTER_ATTRIBUTE_CONTEXT:
    case cuda::CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case cuda::CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case cuda::CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case cuda::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case cuda::CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return 8;
    case cuda::CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case cuda::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return 4;
    case cuda::CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case cuda::CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case cuda::CU_POINTER_ATTRIBUTE_MAPPED:
      return 1;
    default:
      return 0;
  }
}

}  // namespace

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  return CallInContext([&](State& state, ContextObject& context) {
    if (data == nullptr) return state.Fail(CUDA_ERROR_INVALID_VALUE, "nowhere to write");
    const CUresult result =
        GetAttribute(context, FindMeaning(context, address), address, attribute, data);
    return result == CUDA_SUCCESS
               ? result
               : state.Fail(result,
                            "the driver does not know the pointer, or it has no such "
                            "attribute");
  });
}

CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr address) {
  return CallInContext([&](State& state, ContextObject& context) {
    if (count == 0 || attributes == nullptr || data == nullptr) {
      return state.Fail(CUDA_ERROR_INVALID_VALUE, "no attributes are asked for");
    }
    const Meaning meaning = FindMeaning(context, address);
    for (unsigned int i = 0; i < count; ++i) {
      const size_t bytes = AttributeBytes(attributes[i]);
      if (bytes == 0 || data[i] == nullptr) {
        return state.Fail(CUDA_ERROR_INVALID_VALUE, "no such pointer attribute, or no room for it");
      }
      // Unlike the single form this one answers zero for what a pointer does not have.
      std::memset(data[i], 0, bytes);
      GetAttribute(context, meaning, address, attributes[i], data[i]);
    }
    return CUDA_SUCCESS;
  });
}

}  // namespace assay::emulator::exported
