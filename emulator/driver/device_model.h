// The device that is emulated: its limits by compute capability, and what it answers to attribute
// queries.
//
// Immutable data; thread-safe.
#ifndef ASSAY_EMULATOR_DRIVER_DEVICE_MODEL_H_
#define ASSAY_EMULATOR_DRIVER_DEVICE_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/cuda/driver_abi.h"
#include "emulator/engine.h"

namespace assay::emulator {

// CUDA 13.0, and with it PTX ISA 9.0.
inline constexpr int kDriverVersion = 13000;
inline constexpr int kPtxVersionMajor = 9;
inline constexpr int kPtxVersionMinor = 0;

inline constexpr int kWarpSize = 32;
inline constexpr int kRegistersPerMultiprocessor = 65536;
// PTX does not say how many registers a kernel will have. This many let any block of 1024 threads
// run.
inline constexpr int kNominalRegisters = 32;
inline constexpr uint32_t kGridXMax = 0x7fffffff;
inline constexpr uint32_t kGridYZMax = 65535;
inline constexpr uint32_t kBlockZMax = 64;
// Of streams; they change nothing.
inline constexpr int kPriorityLeast = 0;
inline constexpr int kPriorityGreatest = -5;
inline constexpr size_t kParameterBytesMax = 32764;

// What differs between compute capabilities (CUDA C++ Programming Guide, "Technical specifications
// per compute capability").
struct DeviceModel {
  int arch = 80;      // 10 major + minor
  int mma_arch = 80;  // whose tensor cores are followed
  int threads_per_multiprocessor = 2048;
  int blocks_per_multiprocessor = 32;
  int shared_bytes_per_multiprocessor = 0;
  int shared_bytes_optin = 0;     // of one block, static and dynamic
  int shared_bytes_reserved = 0;  // by the system, of one block
};

// nullptr for a compute capability that is not emulated.
const DeviceModel* FindDeviceModel(uint32_t arch);

// "Assay emulated sm_80".
std::string DeviceName(const DeviceModel& model);

// False for an attribute that CUDA does not have. What the device lacks, and whatever would be a
// measure of time, is 0.
bool DeviceAttribute(const DeviceModel& model, cuda::CUdevice_attribute attribute, int* value);

// Whether PTX for `target` ("sm_90", "sm_90a", "sm_100f") runs on the model: targets up to its own
// do, `a` ones only on exactly theirs, `f` ones on theirs and later ones of the family.
bool RunsTarget(const DeviceModel& model, std::string_view target);

// Blocks of `threads` threads with `shared_bytes` of shared memory, static and dynamic, that one
// multiprocessor holds.
int BlocksPerMultiprocessor(const DeviceModel& model, uint32_t threads, uint64_t shared_bytes);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_DRIVER_DEVICE_MODEL_H_
