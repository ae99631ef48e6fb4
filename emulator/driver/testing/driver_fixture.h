// A fresh emulated driver with one current context for every test. The driver's state belongs to
// the process, so the fixture puts it back.
#ifndef ASSAY_EMULATOR_DRIVER_TESTING_DRIVER_FIXTURE_H_
#define ASSAY_EMULATOR_DRIVER_TESTING_DRIVER_FIXTURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/driver/call.h"
#include "emulator/driver/results.h"
#include "gtest/gtest.h"

namespace assay::emulator {

// EXPECT_EQ with names.
#define ASSAY_EXPECT_RESULT(call, expected)                                    \
  do {                                                                         \
    const cuda::CUresult assay_result = (call);                                \
    EXPECT_EQ(assay_result, cuda::expected)                                    \
        << #call << " returned "                                               \
        << (ResultName(assay_result) == nullptr ? "a number that is no result" \
                                                : ResultName(assay_result));   \
  } while (false)
#define ASSAY_EXPECT_SUCCESS(call) ASSAY_EXPECT_RESULT(call, CUDA_SUCCESS)

// A report with its texts copied.
struct TakenReport {
  struct Fault {
    std::string kind;
    std::string kernel;
    std::string message;
    std::string space;
    int ptx_line = 0;
  };
  std::vector<Fault> faults;
  cuda::AssayEmulatorCounters counters = {};
  uint64_t launches = 0;
  uint64_t launches_stopped = 0;
  std::string output;
  std::string last_error;
};

inline TakenReport TakeReport() {
  TakenReport taken;
  const auto copy = [](void* user, const cuda::AssayEmulatorReport* report) {
    auto* const to = static_cast<TakenReport*>(user);
    for (uint64_t i = 0; i < report->fault_count; ++i) {
      const cuda::AssayEmulatorFault& fault = report->faults[i];
      to->faults.push_back(
          {fault.kind_name, fault.kernel, fault.message, fault.space, fault.ptx_line});
    }
    to->counters = report->counters;
    to->launches = report->launches;
    to->launches_stopped = report->launches_stopped;
    to->output.assign(report->output, report->output_bytes);
    to->last_error = report->last_error;
  };
  ASSAY_EXPECT_SUCCESS(exported::assayEmulatorTakeReport(copy, &taken));
  return taken;
}

inline cuda::AssayEmulatorOptions PlainOptions() {
  cuda::AssayEmulatorOptions options = {};
  options.struct_bytes = sizeof options;
  options.check_races = 1;
  options.instructions_max = 100'000;
  options.device_bytes = 64 << 20;
  return options;
}

class DriverFixture : public testing::Test {
 protected:
  void SetUp() override {
    const cuda::AssayEmulatorOptions options = PlainOptions();
    ASSAY_EXPECT_SUCCESS(exported::cuInit(0));
    ASSAY_EXPECT_SUCCESS(exported::assayEmulatorConfigure(&options));
    ASSAY_EXPECT_SUCCESS(exported::cuCtxCreate_v2(&context_, 0, 0));
    TakeReport();
  }

  void TearDown() override {
    if (context_ != nullptr) exported::cuCtxDestroy_v2(context_);
    while (exported::cuDevicePrimaryCtxRelease_v2(0) == cuda::CUDA_SUCCESS) {
    }
    cuda::CUcontext left = nullptr;
    while (exported::cuCtxPopCurrent_v2(&left) == cuda::CUDA_SUCCESS) {
    }
    TakeReport();
  }

  cuda::CUdeviceptr Allocate(size_t bytes) {
    cuda::CUdeviceptr address = 0;
    ASSAY_EXPECT_SUCCESS(exported::cuMemAlloc_v2(&address, bytes));
    return address;
  }

  template <typename T>
  cuda::CUdeviceptr Upload(const std::vector<T>& values) {
    const cuda::CUdeviceptr address = Allocate(values.size() * sizeof(T));
    ASSAY_EXPECT_SUCCESS(
        exported::cuMemcpyHtoD_v2(address, values.data(), values.size() * sizeof(T)));
    return address;
  }

  template <typename T>
  std::vector<T> Download(cuda::CUdeviceptr address, size_t count) {
    std::vector<T> values(count);
    ASSAY_EXPECT_SUCCESS(exported::cuMemcpyDtoH_v2(values.data(), address, count * sizeof(T)));
    return values;
  }

  cuda::CUmodule Load(const char* ptx) {
    cuda::CUmodule module = nullptr;
    ASSAY_EXPECT_SUCCESS(exported::cuModuleLoadData(&module, ptx));
    return module;
  }

  cuda::CUfunction Kernel(const char* ptx, const char* name) {
    cuda::CUfunction function = nullptr;
    ASSAY_EXPECT_SUCCESS(exported::cuModuleGetFunction(&function, Load(ptx), name));
    return function;
  }

  // Destroys the context, whatever state it is in, and makes another one current.
  void NewContext() {
    ASSAY_EXPECT_SUCCESS(exported::cuCtxDestroy_v2(context_));
    ASSAY_EXPECT_SUCCESS(exported::cuCtxCreate_v2(&context_, 0, 0));
  }

  cuda::CUcontext context_ = nullptr;
};

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_DRIVER_TESTING_DRIVER_FIXTURE_H_
