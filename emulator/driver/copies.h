// Moving bytes between host and emulated device, with their shadow: what was never written stays
// unwritten in a copy.
//
// For the holder of State::mutex. Ranges are inside one live allocation, or nothing is moved;
// errors are those of DeviceMemory.
#ifndef ASSAY_EMULATOR_DRIVER_COPIES_H_
#define ASSAY_EMULATOR_DRIVER_COPIES_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "emulator/memory/device_memory.h"

namespace assay::emulator {

// One end of a copy: device memory when `host` is nullptr.
struct CopyEnd {
  std::byte* host = nullptr;
  uint64_t device = 0;
};

// From one end to the other; ranges may overlap. Nothing is done for no bytes.
absl::Status CopyBytes(DeviceMemory* memory, const CopyEnd& to, const CopyEnd& from,
                       uint64_t bytes);

// Writes `count` values of `width` bytes (1, 2 or 4). INVALID_ARGUMENT when `address` is not
// aligned to it.
absl::Status FillDevice(DeviceMemory* memory, uint64_t address, uint32_t value, int width,
                        uint64_t count);

// The end that a pointer of the unified address space means: the device's range of addresses is no
// host memory.
CopyEnd UnifiedEnd(const DeviceMemory& memory, uint64_t address);

// How many bytes of a range nobody wrote; `*first` is the offset of the first, or `bytes`.
absl::Status CountUninitialized(const DeviceMemory& memory, uint64_t address, uint64_t bytes,
                                uint64_t* count, uint64_t* first);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_DRIVER_COPIES_H_
