#include "emulator/driver/device_model.h"

#include "gtest/gtest.h"

namespace assay::emulator {
namespace {

TEST(DeviceModelTest, EveryModelIsConsistent) {
  int models = 0;
  for (uint32_t arch = 0; arch < 200; ++arch) {
    const DeviceModel* const model = FindDeviceModel(arch);
    if (model == nullptr) continue;
    ++models;
    EXPECT_EQ(model->arch, static_cast<int>(arch));
    EXPECT_EQ(DeviceName(*model), "Assay emulated sm_" + std::to_string(arch));
    EXPECT_LE(model->shared_bytes_optin + model->shared_bytes_reserved,
              model->shared_bytes_per_multiprocessor);
    EXPECT_LE(static_cast<uint32_t>(model->shared_bytes_optin), kSharedBytesOptInMax);
    EXPECT_GE(model->threads_per_multiprocessor, static_cast<int>(kThreadsPerBlockMax));
    // A block of the largest size, or with the most shared memory, can run.
    EXPECT_GE(BlocksPerMultiprocessor(*model, kThreadsPerBlockMax, 0), 1);
    EXPECT_EQ(BlocksPerMultiprocessor(*model, 32, static_cast<uint64_t>(model->shared_bytes_optin)),
              1);
    EXPECT_EQ(
        BlocksPerMultiprocessor(*model, 32, static_cast<uint64_t>(model->shared_bytes_optin) + 1),
        0);
    for (int number = 1; number <= cuda::CU_DEVICE_ATTRIBUTE_LAST; ++number) {
      int value = -1;
      EXPECT_TRUE(DeviceAttribute(*model, static_cast<cuda::CUdevice_attribute>(number), &value));
      EXPECT_GE(value, 0) << number;
    }
  }
  EXPECT_EQ(models, 11);
}

TEST(DeviceModelTest, Attributes) {
  using namespace cuda;  // NOLINT(build/namespaces)
  const struct {
    uint32_t arch;
    CUdevice_attribute attribute;
    int expected;
  } cases[] = {
      {80, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 8},
      {80, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
      {89, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 9},
      {120, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 12},
      {75, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 65536},
      {80, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 166912},
      {90, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
      {80, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
      {89, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 1536},
      {80, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
      {80, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
      {80, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 0},
      {80, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 0},
      {80, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 0},
      {90, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0},
  };
  for (const auto& test : cases) {
    int value = -1;
    EXPECT_TRUE(DeviceAttribute(*FindDeviceModel(test.arch), test.attribute, &value));
    EXPECT_EQ(value, test.expected) << "sm_" << test.arch << " attribute " << test.attribute;
  }
  int value = -1;
  EXPECT_FALSE(DeviceAttribute(*FindDeviceModel(80), static_cast<CUdevice_attribute>(0), &value));
  EXPECT_FALSE(
      DeviceAttribute(*FindDeviceModel(80), static_cast<CUdevice_attribute>(9999), &value));
}

TEST(DeviceModelTest, Targets) {
  const struct {
    uint32_t arch;
    const char* target;
    bool runs;
  } cases[] = {
      {80, "sm_75", true},       {80, "sm_80", true},    {80, "sm_86", false},
      {80, "sm_90", false},      {90, "sm_90a", true},   {100, "sm_90a", false},
      {120, "sm_90", true},      {103, "sm_100f", true}, {100, "sm_103f", false},
      {120, "sm_100f", false},   {80, "sm_", false},     {80, "", false},
      {80, "compute_80", false}, {80, "sm_-5", false},   {80, "sm_99999999999", false},
  };
  for (const auto& test : cases) {
    EXPECT_EQ(RunsTarget(*FindDeviceModel(test.arch), test.target), test.runs)
        << test.target << " on sm_" << test.arch;
  }
}

TEST(DeviceModelTest, Occupancy) {
  const struct {
    uint32_t arch;
    uint32_t threads;
    uint64_t shared;
    int blocks;
  } cases[] = {
      {80, 1024, 0, 2},          {80, 256, 0, 8},        {80, 32, 0, 32},  {80, 1, 0, 32},
      {80, 33, 0, 32},           {89, 1024, 0, 1},       {75, 1024, 0, 1}, {80, 256, 48 << 10, 3},
      {80, 256, 81 << 10, 2},    {80, 256, 82 << 10, 1}, {80, 0, 0, 0},    {80, 1025, 0, 0},
      {80, 32, ~uint64_t{0}, 0},
  };
  for (const auto& test : cases) {
    EXPECT_EQ(BlocksPerMultiprocessor(*FindDeviceModel(test.arch), test.threads, test.shared),
              test.blocks)
        << "sm_" << test.arch << " " << test.threads << " threads " << test.shared << " bytes";
  }
}

}  // namespace
}  // namespace assay::emulator
