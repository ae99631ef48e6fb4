#include "worker/agent/device_backend.h"

#include "assay/internal/v1/runner.pb.h"
#include "base/file.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/testing/pipeline_fixture.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

internal::v1::DeviceFacts Facts(const std::string& name, int compute_capability) {
  internal::v1::DeviceFacts facts;
  facts.set_name(name);
  facts.set_compute_capability(compute_capability);
  facts.set_driver_version(12080);
  facts.set_multiprocessor_count(132);
  return facts;
}

TEST(DeviceBackendTest, NamesClassesByModelAndCapability) {
  const struct {
    const char* name;
    int capability;
    const char* want;
  } cases[] = {
      {"NVIDIA H100 PCIe", 90, "cuda-nvidia-h100-pcie-sm_90"},
      {"NVIDIA A100-SXM4-40GB MIG 1g.5gb", 80, "cuda-nvidia-a100-sxm4-40gb-mig-1g-5gb-sm_80"},
      {" (Tesla)  T4 ", 75, "cuda-tesla-t4-sm_75"},
      {"", 120, "cuda-unknown-sm_120"},
  };
  for (const auto& c : cases) EXPECT_EQ(CudaDeviceClass(Facts(c.name, c.capability)), c.want);
}

TEST(DeviceBackendTest, PtxOfALaterCudaThanTheDriversIsNotSentToIt) {
  const struct {
    const char* compiler;
    int driver;
    absl::StatusCode want;
  } cases[] = {
      {"NVRTC 13.0", 13000, absl::StatusCode::kOk},
      {"NVRTC 12.8", 13000, absl::StatusCode::kOk},
      {"NVRTC 13.0", 12080, absl::StatusCode::kUnavailable},
      {"NVRTC 12.9", 12080, absl::StatusCode::kUnavailable},
      {"NVRTC", 13000, absl::StatusCode::kInternal},
  };
  for (const auto& c : cases) {
    const absl::Status status = CheckDriverReads(c.compiler, c.driver);
    EXPECT_EQ(status.code(), c.want) << c.compiler << ", driver " << c.driver;
    if (c.want == absl::StatusCode::kUnavailable) {
      EXPECT_THAT(status, HasReason("DRIVER_TOO_OLD"));
    }
  }
}

class CudaDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(TemporaryDirectory folder, TemporaryDirectory::Create("cuda-device"));
    folder_ = std::make_unique<TemporaryDirectory>(std::move(folder));
    paths_.cache_directory = folder_->path();
    paths_.nvrtc_helper = folder_->path() + "/no-helper";
    paths_.emulated_driver = "/lib/emulated.so";
    paths_.cuda_driver = "libcuda.so.1";
  }

  std::unique_ptr<TemporaryDirectory> folder_;
  DevicePaths paths_;
  FakeRunners runners_;
};

TEST_F(CudaDeviceTest, AsksARunnerWhatTheDeviceIs) {
  runners_.edit = [](const internal::v1::RunnerRequest& request,
                     internal::v1::RunnerReport* report) {
    *report->mutable_device_facts() = Facts("NVIDIA H100 PCIe", 90);
  };
  ASSERT_OK_AND_ASSIGN(const DeviceParts parts, MakeCudaDevice(2, paths_, &runners_));
  ASSERT_EQ(runners_.requests.size(), 1u);
  EXPECT_EQ(runners_.requests[0].device_query().driver(), "libcuda.so.1");
  EXPECT_EQ(runners_.requests[0].device_query().ordinal(), 2);
  const DeviceBackend& backend = parts.backend;
  EXPECT_FALSE(backend.is_emulated);
  EXPECT_EQ(backend.ordinal, 2);
  EXPECT_EQ(backend.device_class, "cuda-nvidia-h100-pcie-sm_90");
  EXPECT_EQ(backend.instruction_set, "sm_90 CUDA 12.8");
  EXPECT_EQ(backend.model, "NVIDIA H100 PCIe");
  EXPECT_EQ(backend.preflight_driver, "/lib/emulated.so");
  EXPECT_EQ(backend.arch, 90);
  EXPECT_EQ(parts.multiprocessor_count, 132);
  EXPECT_NE(backend.ptx, nullptr);
}

TEST_F(CudaDeviceTest, SaysWhatToInstallWithoutADriver) {
  runners_.edit = [](const internal::v1::RunnerRequest& request,
                     internal::v1::RunnerReport* report) {
    report->mutable_error()->set_code("UNAVAILABLE");
    report->mutable_error()->set_reason("DRIVER_MISSING");
    report->mutable_error()->set_message("install the NVIDIA driver");
  };
  const absl::Status status = MakeCudaDevice(0, paths_, &runners_).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("install the NVIDIA")));
  EXPECT_THAT(status, HasReason("DRIVER_MISSING"));
}

TEST_F(CudaDeviceTest, ARunnerThatDiesIsReported) {
  runners_.status = absl::UnavailableError("the runner ended without a report");
  EXPECT_THAT(MakeCudaDevice(0, paths_, &runners_).status(),
              StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace assay
