#include "emulator/driver/copies.h"

#include <bit>
#include <cstring>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "emulator/memory/bits.h"

namespace assay::emulator {
namespace {

// The host's view of an end, which holds `bytes`.
absl::StatusOr<std::byte*> View(const DeviceMemory& memory, const CopyEnd& end, uint64_t bytes) {
  if (end.host != nullptr) return end.host;
  return memory.Range(end.device, bytes);
}

// Calls f(offset, length, initialized) for runs of bytes with the same shadow. The range is inside
// `allocation`.
template <typename F>
void EachRun(const Allocation& allocation, uint64_t offset, uint64_t bytes, F&& f) {
  uint64_t at = 0;
  while (at < bytes) {
    const uint64_t position = offset + at;
    const uint64_t word = allocation.initialized[position / 64] >> (position % 64);
    const bool initialized = (word & 1) != 0;
    // Bits shifted in from above are zeros and end a run of ones, which the next word takes up
    // again.
    const int same = initialized ? std::countr_one(word) : std::countr_zero(word);
    uint64_t run = static_cast<uint64_t>(same);
    if (run > 64 - position % 64) run = 64 - position % 64;
    if (run > bytes - at) run = bytes - at;
    f(at, run, initialized);
    at += run;
  }
}

struct Run {
  uint64_t offset;
  uint64_t bytes;
  bool initialized;
};

// Both ranges are known to be valid. The runs are collected first: the ranges may overlap.
absl::Status CopyShadow(DeviceMemory* memory, uint64_t to, uint64_t from, uint64_t bytes) {
  const Allocation& source = *memory->Find(from);
  std::vector<Run> runs;
  EachRun(source, from - source.address, bytes, [&](uint64_t at, uint64_t run, bool initialized) {
    if (!runs.empty() && runs.back().initialized == initialized) {
      runs.back().bytes += run;
    } else {
      runs.push_back({at, run, initialized});
    }
  });
  for (const Run& run : runs) {
    ASSAY_RETURN_IF_ERROR(memory->SetInitialized(to + run.offset, run.bytes, run.initialized));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CopyBytes(DeviceMemory* memory, const CopyEnd& to, const CopyEnd& from,
                       uint64_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  ASSAY_ASSIGN_OR_RETURN(std::byte* const target, View(*memory, to, bytes));
  ASSAY_ASSIGN_OR_RETURN(const std::byte* const source, View(*memory, from, bytes));
  std::memmove(target, source, bytes);
  if (to.host != nullptr) return absl::OkStatus();
  if (from.host != nullptr) return memory->SetInitialized(to.device, bytes, true);
  return CopyShadow(memory, to.device, from.device, bytes);
}

absl::Status FillDevice(DeviceMemory* memory, uint64_t address, uint32_t value, int width,
                        uint64_t count) {
  const auto bytes_each = static_cast<uint64_t>(width);
  if (address % bytes_each != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("0x", absl::Hex(address), " is not aligned to values of ", width, " bytes"));
  }
  if (count == 0) return absl::OkStatus();
  if (count > memory->bytes_total() / bytes_each) {
    return absl::OutOfRangeError(
        absl::StrCat("the emulated device has no ", count, " values of ", width, " bytes"));
  }
  const uint64_t bytes = count * bytes_each;
  ASSAY_ASSIGN_OR_RETURN(std::byte* const target, memory->Range(address, bytes));
  if (width == 1) {
    std::memset(target, static_cast<int>(value & 0xff), bytes);
  } else {
    for (uint64_t i = 0; i < count; ++i) std::memcpy(target + i * bytes_each, &value, bytes_each);
  }
  return memory->SetInitialized(address, bytes, true);
}

CopyEnd UnifiedEnd(const DeviceMemory& memory, uint64_t address) {
  CopyEnd end;
  end.device = address;
  if (address - kGlobalBase >= memory.bytes_total()) {
    end.host = reinterpret_cast<std::byte*>(address);
  }
  return end;
}

absl::Status CountUninitialized(const DeviceMemory& memory, uint64_t address, uint64_t bytes,
                                uint64_t* count, uint64_t* first) {
  *count = 0;
  *first = bytes;
  if (bytes == 0) return absl::OkStatus();
  ASSAY_RETURN_IF_ERROR(memory.Range(address, bytes).status());
  const Allocation& allocation = *memory.Find(address);
  EachRun(allocation, address - allocation.address, bytes,
          [&](uint64_t at, uint64_t run, bool initialized) {
            if (initialized) return;
            if (*count == 0) *first = at;
            *count += run;
          });
  return absl::OkStatus();
}

}  // namespace assay::emulator
