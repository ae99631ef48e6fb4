#include "emulator/driver/device_model.h"

#include <algorithm>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/strings.h"

namespace assay::emulator {
namespace {

constexpr int kKiB = 1024;

constexpr DeviceModel kModels[] = {
    {75, 75, 1024, 16, 64 * kKiB, 64 * kKiB, 0},
    {80, 80, 2048, 32, 164 * kKiB, 163 * kKiB, kKiB},
    {86, 80, 1536, 16, 100 * kKiB, 99 * kKiB, kKiB},
    {87, 80, 1536, 16, 164 * kKiB, 163 * kKiB, kKiB},
    {89, 89, 1536, 24, 100 * kKiB, 99 * kKiB, kKiB},
    {90, 90, 2048, 32, 228 * kKiB, 227 * kKiB, kKiB},
    {100, 90, 2048, 32, 228 * kKiB, 227 * kKiB, kKiB},
    {103, 90, 2048, 32, 228 * kKiB, 227 * kKiB, kKiB},
    {110, 90, 1536, 24, 228 * kKiB, 227 * kKiB, kKiB},
    {120, 90, 1536, 24, 100 * kKiB, 99 * kKiB, kKiB},
    {121, 90, 1536, 24, 100 * kKiB, 99 * kKiB, kKiB},
};

// Those that are not 0 and the same on every model.
const std::map<int, int>& CommonAttributes() {
  using namespace cuda;  // NOLINT(build/namespaces): the names are CUDA's
  static const auto& attributes = *new std::map<int, int>{
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kThreadsPerBlockMax},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, kThreadsPerBlockMax},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, kThreadsPerBlockMax},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, kBlockZMax},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, kGridXMax},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, kGridYZMax},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, kGridYZMax},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, kSharedBytesDefaultMax},
      {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 64 * kKiB},
      {CU_DEVICE_ATTRIBUTE_WARP_SIZE, kWarpSize},
      {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 0x7fffffff},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, kRegistersPerMultiprocessor},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, kRegistersPerMultiprocessor},
      {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
      {CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32},
      {CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, 512},
      {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
      {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 1},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, kMultiprocessors},
      {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
      {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 256},
      {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 4 * kKiB * kKiB},
      {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
      {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
      {CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1},
      {CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1},
      {CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 2},
      {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
  };
  return attributes;
}

}  // namespace

const DeviceModel* FindDeviceModel(uint32_t arch) {
  for (const DeviceModel& model : kModels) {
    if (static_cast<uint32_t>(model.arch) == arch) return &model;
  }
  return nullptr;
}

std::string DeviceName(const DeviceModel& model) {
  return absl::StrCat("Assay emulated sm_", model.arch);
}

bool DeviceAttribute(const DeviceModel& model, cuda::CUdevice_attribute attribute, int* value) {
  if (attribute < 1 || attribute > cuda::CU_DEVICE_ATTRIBUTE_LAST) return false;
  switch (attribute) {
    case cuda::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = model.arch / 10;
      return true;
    case cuda::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = model.arch % 10;
      return true;
    case cuda::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      *value = model.threads_per_multiprocessor;
      return true;
    case cuda::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
      *value = model.blocks_per_multiprocessor;
      return true;
    case cuda::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
      *value = model.shared_bytes_per_multiprocessor;
      return true;
    case cuda::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      *value = model.shared_bytes_optin;
      return true;
    case cuda::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
      *value = model.shared_bytes_reserved;
      return true;
    default: {
      const auto it = CommonAttributes().find(attribute);
      *value = it == CommonAttributes().end() ? 0 : it->second;
      return true;
    }
  }
}

bool RunsTarget(const DeviceModel& model, std::string_view target) {
  if (!target.starts_with("sm_")) return false;
  target.remove_prefix(3);
  char suffix = 0;
  if (!target.empty() && (target.back() == 'a' || target.back() == 'f')) {
    suffix = target.back();
    target.remove_suffix(1);
  }
  int arch = 0;
  if (!absl::SimpleAtoi(Av(target), &arch) || arch <= 0) return false;
  if (suffix == 'a') return arch == model.arch;
  if (suffix == 'f') return arch / 10 == model.arch / 10 && arch <= model.arch;
  return arch <= model.arch;
}

int BlocksPerMultiprocessor(const DeviceModel& model, uint32_t threads, uint64_t shared_bytes) {
  if (threads == 0 || threads > kThreadsPerBlockMax) return 0;
  const int warp_threads = static_cast<int>((threads + kWarpSize - 1) / kWarpSize) * kWarpSize;
  int blocks =
      std::min(model.blocks_per_multiprocessor, model.threads_per_multiprocessor / warp_threads);
  blocks = std::min(blocks, kRegistersPerMultiprocessor / (kNominalRegisters * warp_threads));
  // The table's opt-in limit is what a block may ask for; what the system takes comes on top.
  if (shared_bytes > static_cast<uint64_t>(model.shared_bytes_optin)) return 0;
  const uint64_t shared = shared_bytes + static_cast<uint64_t>(model.shared_bytes_reserved);
  if (shared == 0) return blocks;
  const uint64_t fit = static_cast<uint64_t>(model.shared_bytes_per_multiprocessor) / shared;
  return static_cast<int>(std::min<uint64_t>(static_cast<uint64_t>(blocks), fit));
}

}  // namespace assay::emulator
