// A device, a module and buffers for tests that launch PTX kernels on the engine.
//
// Not thread-safe. A step that fails is a failure of the running test.
#ifndef ASSAY_EMULATOR_TESTING_KERNEL_FIXTURE_H_
#define ASSAY_EMULATOR_TESTING_KERNEL_FIXTURE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/engine.h"
#include "emulator/memory/device_memory.h"

namespace assay::emulator {

// The parameter buffer of a kernel, each value at its natural alignment.
class KernelArguments {
 public:
  template <typename... T>
  static KernelArguments Of(T... values) {
    KernelArguments arguments;
    (arguments.Add(&values, sizeof(values)), ...);
    return arguments;
  }
  void Add(const void* value, size_t bytes);
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

class KernelFixture {
 public:
  // The device has `device_bytes`; kernels are those of `ptx`.
  explicit KernelFixture(std::string_view ptx, uint64_t device_bytes = 16 << 20);

  // nullptr when the module was refused: see load_status().
  LoadedModule* module() { return module_.get(); }
  const absl::Status& load_status() const { return load_status_; }
  DeviceMemory& memory() { return *memory_; }

  // An allocation that holds `values`, or one of so many bytes that nobody has written.
  template <typename T>
  uint64_t Put(const std::string& name, const std::vector<T>& values) {
    return PutBytes(name, values.data(), values.size() * sizeof(T));
  }
  uint64_t PutBytes(const std::string& name, const void* values, size_t bytes);
  uint64_t Reserve(const std::string& name, uint64_t bytes);

  template <typename T>
  std::vector<T> Get(uint64_t address, size_t count) {
    std::vector<T> values(count);
    CopyOut(address, values.data(), count * sizeof(T));
    return values;
  }

  absl::StatusOr<LaunchResult> TryRun(std::string_view kernel, const KernelArguments& arguments,
                                      const LaunchOptions& options);
  // TryRun that must be possible; its faults are the caller's to look at.
  LaunchResult Run(std::string_view kernel, const KernelArguments& arguments,
                   const LaunchOptions& options);

 private:
  void CopyOut(uint64_t address, void* to, size_t bytes);

  std::unique_ptr<DeviceMemory> memory_;
  std::unique_ptr<LoadedModule> module_;
  absl::Status load_status_;
};

// Options with one-dimensional sizes.
LaunchOptions GridOf(uint32_t blocks, uint32_t threads_per_block, uint64_t seed = 0);

// One line a fault: kind, PTX line, block, thread, message.
std::string Describe(const std::vector<Fault>& faults);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_TESTING_KERNEL_FIXTURE_H_
