// One tensor's memory, shared with a guest: the runner's own writable view, a descriptor for the
// guest, and canaries in what the tensor does not fill. Not thread-safe.
#ifndef ASSAY_WORKER_GUEST_TENSOR_MEMORY_H_
#define ASSAY_WORKER_GUEST_TENSOR_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/file.h"

namespace assay {

class TensorMemory {
 public:
  // `writable`: by the guest. Memory is taken at once; RESOURCE_EXHAUSTED when there is not enough.
  static absl::StatusOr<std::unique_ptr<TensorMemory>> Create(size_t bytes, bool writable);
  TensorMemory(const TensorMemory&) = delete;
  ~TensorMemory();

  std::span<std::byte> span() { return {mapping_ + offset_, bytes_}; }
  bool writable() const { return writable_; }
  // For the guest: of a tensor that it may only read, this cannot be written through, nor can the
  // file be opened again for writing.
  int guest_descriptor() const { return guest_fd_.get(); }
  // Brings the lines of the last `bytes` into the caches of the calling thread's core; lines that
  // the guest will write so that it need not fetch them from elsewhere.
  void Touch(size_t bytes);
  // Flushes every line from all caches.
  void Flush() const;
  // Byte offset from the tensor's start of the first broken canary.
  std::optional<int64_t> BrokenCanary() const;

 private:
  TensorMemory() = default;
  void WriteCanaries();

  std::byte* mapping_ = nullptr;
  size_t mapping_bytes_ = 0;
  size_t offset_ = 0;
  size_t bytes_ = 0;
  bool writable_ = false;
  uint64_t seed_ = 0;  // of the canary bytes
  UniqueFd guest_fd_;
};

// How much of the end of each tensor to touch, one after the other, so that the caches hold what
// they would after all of every tensor: of what is walked, no cache keeps more than its own size of
// the end. Twice `cache_bytes` in all, since lines are not replaced strictly in order.
std::vector<size_t> BytesToTouch(std::span<const size_t> tensor_bytes, size_t cache_bytes);

}  // namespace assay

#endif  // ASSAY_WORKER_GUEST_TENSOR_MEMORY_H_
