#include "worker/backend/cuda/device_query.h"

#include <string>

#include "assay/internal/v1/runner.pb.h"
#include "base/test_matchers.h"
#include "gtest/gtest.h"
#include "worker/testing/cuda_fixture.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

class DeviceQueryTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(control_ = ResetFakeCuda(), nullptr); }

  FakeCudaControl* control_ = nullptr;
  internal::v1::DeviceFacts facts_;
};

TEST_F(DeviceQueryTest, SaysWhatTheDeviceIsAndMakesNoContext) {
  const int contexts = control_->live_contexts;
  ASSERT_OK(QueryDevice(FakeCudaPath(), 0, &facts_));
  EXPECT_EQ(facts_.name(), kFakeCudaDeviceName);
  EXPECT_EQ(facts_.compute_capability(), 80);
  EXPECT_EQ(facts_.memory_bytes(), 256 << 20);
  EXPECT_EQ(facts_.l2_bytes(), static_cast<int64_t>(kFakeCudaL2Bytes));
  EXPECT_EQ(facts_.multiprocessor_count(), 1);
  EXPECT_EQ(facts_.driver_version(), 13000);
  EXPECT_EQ(facts_.uuid().size(), 32u);
  EXPECT_EQ(control_->live_contexts, contexts);
}

TEST_F(DeviceQueryTest, SaysWhatToDoWithoutADriver) {
  EXPECT_THAT(QueryDevice(TestLibrary("no_such_libcuda.so.1"), 0, &facts_),
              AllOf(StatusIs(absl::StatusCode::kUnavailable, HasSubstr("install")),
                    HasReason("DRIVER_MISSING")));
  EXPECT_THAT(QueryDevice(TestLibrary("libassay_old_cuda.so"), 0, &facts_),
              AllOf(StatusIs(absl::StatusCode::kUnavailable, HasSubstr("CUDA 11.4 or later")),
                    HasReason("DRIVER_TOO_OLD")));
}

TEST_F(DeviceQueryTest, NeverTakesTheEmulatedDriverForADevice) {
  EXPECT_THAT(QueryDevice(TestLibrary("../bin/libassay_emulated_cuda.so"), 0, &facts_),
              HasReason("DRIVER_EMULATED"));
}

TEST_F(DeviceQueryTest, RefusesDevicesThatCannotBeUsed) {
  EXPECT_THAT(QueryDevice(FakeCudaPath(), 1, &facts_),
              AllOf(StatusIs(absl::StatusCode::kUnavailable, HasSubstr("CUDA device 1")),
                    HasReason("DEVICE_NOT_FOUND")));
  control_->init_result = cuda::CUDA_ERROR_NO_DEVICE;
  EXPECT_THAT(QueryDevice(FakeCudaPath(), 0, &facts_), HasReason("DEVICE_NOT_FOUND"));
  control_->init_result = cuda::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
  EXPECT_THAT(QueryDevice(FakeCudaPath(), 0, &facts_),
              AllOf(StatusIs(absl::StatusCode::kUnavailable, HasSubstr("SYSTEM_DRIVER_MISMATCH")),
                    HasReason("DRIVER_FAILED")));
  control_->init_result = cuda::CUDA_SUCCESS;
  control_->arch = 70;
  EXPECT_THAT(QueryDevice(FakeCudaPath(), 0, &facts_),
              AllOf(StatusIs(absl::StatusCode::kUnavailable, HasSubstr("7.0")),
                    HasReason("DEVICE_TOO_OLD")));
}

}  // namespace
}  // namespace assay
