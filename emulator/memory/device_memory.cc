#include "emulator/memory/device_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "emulator/memory/bits.h"
#include "emulator/memory/race.h"

namespace assay::emulator {
namespace {

constexpr uint64_t kAlignment = 256;
constexpr uint64_t kGapLeast = 4096;
constexpr uint64_t kGapSteps = 64;  // of kAlignment, on top of it
// All bits set: NaN in every floating-point type.
constexpr int kPoison = 0xff;

// Address space that takes memory only where it is touched. nullptr when there is none.
void* Reserve(uint64_t bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

uint64_t RoundUp(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

// Gives the whole pages of a range back; they read as zeros afterwards.
void Discard(void* from, uint64_t bytes) {
  constexpr uint64_t kPage = 4096;
  const uint64_t first = RoundUp(reinterpret_cast<uint64_t>(from), kPage);
  const uint64_t last = (reinterpret_cast<uint64_t>(from) + bytes) / kPage * kPage;
  if (last > first) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace

DeviceMemory::DeviceMemory(const Options& options) : options_(options), random_(options.seed) {}

absl::StatusOr<std::unique_ptr<DeviceMemory>> DeviceMemory::Create(const Options& options) {
  if (options.bytes < kAlignment || options.bytes > (uint64_t{1} << 40)) {
    return absl::InvalidArgumentError(
        absl::StrCat("an emulated device has 256 bytes to 1 TiB of memory, not ", options.bytes));
  }
  Options rounded = options;
  rounded.bytes = RoundUp(options.bytes, 4096);
  std::unique_ptr<DeviceMemory> memory(new DeviceMemory(rounded));
  memory->data_ = static_cast<std::byte*>(Reserve(rounded.bytes));
  memory->initialized_ = static_cast<uint64_t*>(Reserve(rounded.bytes / 8));
  memory->race_ = static_cast<uint64_t*>(Reserve(rounded.bytes * 4));
  memory->byte_race_ = static_cast<uint64_t*>(Reserve(rounded.bytes * 16));
  if (memory->data_ == nullptr || memory->initialized_ == nullptr || memory->race_ == nullptr ||
      memory->byte_race_ == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no address space for an emulated device of ", rounded.bytes,
                     " bytes and twenty-one times as much for its checks; ask for less"));
  }
  return memory;
}

DeviceMemory::~DeviceMemory() {
  if (data_ != nullptr) munmap(data_, options_.bytes);
  if (initialized_ != nullptr) munmap(initialized_, options_.bytes / 8);
  if (race_ != nullptr) munmap(race_, options_.bytes * 4);
  if (byte_race_ != nullptr) munmap(byte_race_, options_.bytes * 16);
}

uint64_t DeviceMemory::RandomGap() {
  // splitmix64
  uint64_t z = (random_ += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return kGapLeast + (z ^ (z >> 31)) % kGapSteps * kAlignment;
}

bool DeviceMemory::PlaceFirstFit(uint64_t bytes, uint64_t* address) {
  for (auto it = allocations_.begin(); it != allocations_.end();) {
    it = it->second->freed ? allocations_.erase(it) : std::next(it);
  }
  uint64_t from = kGlobalBase + kGapLeast;
  for (const auto& [start, allocation] : allocations_) {
    if (start >= from + bytes + kGapLeast) break;
    from = RoundUp(start + allocation->bytes, kAlignment) + kGapLeast;
  }
  *address = from;
  return from + bytes + kGapLeast <= kGlobalBase + options_.bytes;
}

absl::StatusOr<uint64_t> DeviceMemory::Allocate(uint64_t bytes, std::string name) {
  if (bytes == 0) return absl::InvalidArgumentError("an allocation has at least one byte");
  const absl::MutexLock lock(&mutex_);
  if (bytes > options_.bytes || in_use_ > options_.bytes - bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("the emulated device has ", options_.bytes,
                                                     " bytes, ", in_use_, " of them in use; ",
                                                     bytes, " more do not fit"));
  }
  uint64_t address = RoundUp(next_ + RandomGap(), kAlignment);
  if (address + bytes + kGapLeast > kGlobalBase + options_.bytes) {
    if (!PlaceFirstFit(bytes, &address)) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "the emulated device's memory is fragmented; ", bytes, " bytes do not fit in one piece"));
    }
  } else {
    next_ = address + bytes;
  }
  const uint64_t offset = address - kGlobalBase;
  auto allocation = std::make_unique<Allocation>();
  allocation->address = address;
  allocation->bytes = bytes;
  allocation->name = name.empty() ? absl::StrCat("allocation ", count_) : std::move(name);
  allocation->host = data_ + offset;
  allocation->initialized = initialized_ + offset / 64;
  allocation->race = race_ + offset / 2;
  allocation->byte_race = byte_race_ + offset * 2;
  ++count_;
  in_use_ += bytes;
  std::memset(allocation->host, kPoison, bytes);
  ClearBits(allocation->initialized, 0, bytes);
  Discard(allocation->race, bytes * 4);
  allocations_[address] = std::move(allocation);
  return address;
}

absl::Status DeviceMemory::Free(uint64_t address) {
  const absl::MutexLock lock(&mutex_);
  const auto it = allocations_.find(address);
  if (it == allocations_.end() || it->second->freed) {
    return absl::InvalidArgumentError(
        absl::StrCat("0x", absl::Hex(address), " is not the start of an allocation",
                     it == allocations_.end() ? "" : "; it was freed before"));
  }
  Allocation& allocation = *it->second;
  allocation.freed = true;
  in_use_ -= allocation.bytes;
  Discard(allocation.host, allocation.bytes);
  Discard(allocation.race, allocation.bytes * 4);
  Discard(allocation.byte_race, allocation.bytes * 16);
  return absl::OkStatus();
}

const Allocation* DeviceMemory::Find(uint64_t address) const {
  const absl::MutexLock lock(&mutex_);
  auto it = allocations_.upper_bound(address);
  if (it == allocations_.begin()) return nullptr;
  --it;
  return address - it->first < it->second->bytes ? it->second.get() : nullptr;
}

const Allocation* DeviceMemory::Nearest(uint64_t address) const {
  const absl::MutexLock lock(&mutex_);
  const auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) {
    return after == allocations_.end() ? nullptr : after->second.get();
  }
  const Allocation* const before = std::prev(after)->second.get();
  if (after == allocations_.end()) return before;
  const uint64_t behind = address - before->address;
  const uint64_t distance = behind < before->bytes ? 0 : behind - before->bytes;
  return distance <= after->first - address ? before : after->second.get();
}

absl::StatusOr<std::byte*> DeviceMemory::Range(uint64_t address, uint64_t bytes) const {
  const Allocation* const allocation = Find(address);
  if (allocation == nullptr || allocation->freed) {
    return absl::OutOfRangeError(
        absl::StrCat("0x", absl::Hex(address), " is in no allocation of the emulated device"));
  }
  const uint64_t offset = address - allocation->address;
  if (bytes > allocation->bytes - offset) {
    return absl::OutOfRangeError(absl::StrCat(bytes, " bytes at offset ", offset,
                                              " pass the end of ", allocation->name, ", which has ",
                                              allocation->bytes));
  }
  return allocation->host + offset;
}

absl::Status DeviceMemory::SetInitialized(uint64_t address, uint64_t bytes, bool initialized) {
  ASSAY_RETURN_IF_ERROR(Range(address, bytes).status());
  const Allocation* const allocation = Find(address);
  const uint64_t offset = address - allocation->address;
  if (initialized) {
    SetBits(allocation->initialized, offset, bytes);
  } else {
    ClearBits(allocation->initialized, offset, bytes);
  }
  return absl::OkStatus();
}

absl::Status DeviceMemory::SetRole(uint64_t address, Role role) {
  const absl::MutexLock lock(&mutex_);
  const auto it = allocations_.find(address);
  if (it == allocations_.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("0x", absl::Hex(address), " is not the start of an allocation"));
  }
  it->second->role = role;
  return absl::OkStatus();
}

absl::Status DeviceMemory::SetName(uint64_t address, std::string name) {
  const absl::MutexLock lock(&mutex_);
  const auto it = allocations_.find(address);
  if (it == allocations_.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("0x", absl::Hex(address), " is not the start of an allocation"));
  }
  it->second->name = std::move(name);
  return absl::OkStatus();
}

uint64_t DeviceMemory::bytes_in_use() const {
  const absl::MutexLock lock(&mutex_);
  return in_use_;
}

uint32_t DeviceMemory::NextGeneration() {
  if (generation_ == kGenerationMax) {
    Discard(race_, options_.bytes * 4);
    generation_ = 0;
  }
  return ++generation_;
}

}  // namespace assay::emulator
