// The emulated device's global memory: one arena, its allocations between guard zones, and the
// shadow of every byte.
//
// A device address is not a host address. Allocations lie at multiples of 256 bytes with random
// gaps; a freed one keeps its place until the arena is nearly full, so that its use is recognised.
// Thread-safe: Allocate, Free and Find may be called from any thread, kernels run on several.
#ifndef ASSAY_EMULATOR_MEMORY_DEVICE_MEMORY_H_
#define ASSAY_EMULATOR_MEMORY_DEVICE_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace assay::emulator {

// Windows of the 64-bit generic address space. Global and const addresses are generic ones.
inline constexpr uint64_t kSharedWindow = 0x0000'7d00'0000'0000;  // + shared address
inline constexpr uint64_t kLocalWindow = 0x0000'7e00'0000'0000;   // + local address
inline constexpr uint64_t kParamWindow = 0x0000'7f00'0000'0000;  // + offset in the parameter buffer
inline constexpr uint64_t kWindowBytes = uint64_t{1} << 32;
inline constexpr uint64_t kGlobalBase = 0x0000'7000'0000'0000;
// Shared and local addresses begin here, so that null is no address.
inline constexpr uint32_t kSharedBase = 0x400;
inline constexpr uint32_t kLocalBase = 0x400;

enum class Role : uint8_t {
  kPlain,     // read and written
  kInput,     // a kernel must not write it
  kConstant,  // .const variables; likewise
};

// A range of global memory. Name, role and `freed` apart, immutable while it exists.
struct Allocation {
  uint64_t address = 0;
  uint64_t bytes = 0;
  std::string name;  // of a tensor or variable; "allocation 3" without one
  std::atomic<Role> role{Role::kPlain};
  std::atomic<bool> freed{false};
  std::byte* host = nullptr;        // its first byte
  uint64_t* initialized = nullptr;  // one bit a byte, from the first byte on
  uint64_t* race = nullptr;         // two words (race.h) for every 4 bytes
  uint64_t* byte_race = nullptr;    // eight
};

class DeviceMemory {
 public:
  struct Options {
    uint64_t bytes = uint64_t{8} << 30;  // of address space, and at most in use
    uint64_t seed = 0;                   // of the gaps
  };
  static absl::StatusOr<std::unique_ptr<DeviceMemory>> Create(const Options& options);
  ~DeviceMemory();

  // RESOURCE_EXHAUSTED when it does not fit. Bytes are uninitialised (and hold a poison pattern).
  absl::StatusOr<uint64_t> Allocate(uint64_t bytes, std::string name);
  // INVALID_ARGUMENT when `address` is not the start of a live allocation.
  absl::Status Free(uint64_t address);

  // The allocation, live or freed, that holds `address`, or nullptr. Valid until its memory is
  // reused, which no running kernel sees.
  const Allocation* Find(uint64_t address) const;
  // The one that ends last before `address` or starts first after it; for messages. May be nullptr.
  const Allocation* Nearest(uint64_t address) const;

  // The host's view of a range inside one live allocation; OUT_OF_RANGE with what is there.
  absl::StatusOr<std::byte*> Range(uint64_t address, uint64_t bytes) const;
  // Marks a range as written by the host, or as holding nothing.
  absl::Status SetInitialized(uint64_t address, uint64_t bytes, bool initialized);
  absl::Status SetRole(uint64_t address, Role role);
  absl::Status SetName(uint64_t address, std::string name);

  uint64_t bytes_in_use() const;
  uint64_t bytes_total() const { return options_.bytes; }

  // The number of the next launch in race words, from 1; forgets all accesses when the numbers
  // start again. No kernel may run meanwhile.
  uint32_t NextGeneration();

 private:
  explicit DeviceMemory(const Options& options);
  bool PlaceFirstFit(uint64_t bytes, uint64_t* address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t RandomGap() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  // Mappings over the same range: bytes, a bit a byte, two and eight race words a 4-byte word.
  std::byte* data_ = nullptr;
  uint64_t* initialized_ = nullptr;
  uint64_t* race_ = nullptr;
  uint64_t* byte_race_ = nullptr;
  uint32_t generation_ = 0;
  mutable absl::Mutex mutex_;
  std::map<uint64_t, std::unique_ptr<Allocation>> allocations_
      ABSL_GUARDED_BY(mutex_);  // by address
  uint64_t next_ ABSL_GUARDED_BY(mutex_) = kGlobalBase;
  uint64_t in_use_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t random_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_MEMORY_DEVICE_MEMORY_H_
