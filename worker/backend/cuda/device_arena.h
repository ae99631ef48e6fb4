// One allocation of device memory in which tensors and workspaces lie at random places, anew for
// every call, between guard zones that nobody may write.
//
// Not thread-safe.
#ifndef ASSAY_WORKER_BACKEND_CUDA_DEVICE_ARENA_H_
#define ASSAY_WORKER_BACKEND_CUDA_DEVICE_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/random.h"
#include "worker/backend/cuda/device_context.h"

namespace assay {

// As cudaMalloc aligns.
inline constexpr size_t kDeviceAlignment = 256;

// Where a guard zone was written, told from the nearest buffer.
struct BrokenGuard {
  size_t buffer = 0;
  int64_t offset = 0;  // from its start; negative, or not below its size
};

class DeviceArena {
 public:
  // Places and the guards' pattern follow from `seed`. `context` outlives the arena.
  DeviceArena(DeviceContext* context, uint64_t seed);
  ~DeviceArena();
  DeviceArena(const DeviceArena&) = delete;

  // Takes memory for buffers of these sizes; some may be 0. Once. CUDA_ERROR_OUT_OF_MEMORY when the
  // device has less.
  cuda::CUresult Allocate(const std::vector<size_t>& bytes);
  size_t bytes() const { return bytes_; }

  // Gives every buffer another place, and writes the guard zones. The buffers hold anything then.
  absl::Status Rearrange();

  // By number; 0 for a buffer without bytes.
  cuda::CUdeviceptr address(size_t buffer) const { return buffers_[buffer].address; }

  // The first byte of a guard zone that changed since Rearrange; nullopt: none did.
  absl::StatusOr<std::optional<BrokenGuard>> CheckGuards();

 private:
  struct Buffer {
    size_t bytes = 0;
    cuda::CUdeviceptr address = 0;
  };
  struct Zone {
    size_t begin = 0;  // from the arena's start
    size_t end = 0;
  };
  // The part of the pattern that belongs at `at`, at most `bytes` of it.
  std::span<const std::byte> PatternAt(size_t at, size_t bytes) const;
  BrokenGuard Locate(size_t at) const;

  DeviceContext* const context_;
  Random random_;
  std::vector<std::byte> pattern_;
  size_t phase_ = 0;  // of the pattern; drawn anew with the places
  cuda::CUdeviceptr base_ = 0;
  size_t bytes_ = 0;
  std::vector<Buffer> buffers_;
  std::vector<Zone> guards_;
};

}  // namespace assay

#endif  // ASSAY_WORKER_BACKEND_CUDA_DEVICE_ARENA_H_
