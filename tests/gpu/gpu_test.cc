// What only a GPU can show. Without a driver or a device every test is skipped.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "assay/v1/candidate.pb.h"
#include "assay/v1/fleet.pb.h"
#include "assay/v1/problem.pb.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "tests/gpu/catalogue.h"
#include "tests/gpu/cross_check.h"
#include "worker/backend/cuda/nvml.h"
#include "worker/ceiling/cuda/calibrate_gpu.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<CudaDriver>> driver = CudaDriver::Load("libcuda.so.1");
    // CTest knows the sentence: then it reports the whole as skipped.
    if (!driver.ok()) GTEST_SKIP() << "no CUDA driver here: " << driver.status().message();
    driver_ = *std::move(driver);
    int count = 0;
    if (driver_->functions().cuInit(0) != cuda::CUDA_SUCCESS ||
        driver_->functions().cuDeviceGetCount(&count) != cuda::CUDA_SUCCESS || count == 0) {
      GTEST_SKIP() << "no CUDA driver here that has a device";
    }
    ASSERT_FALSE(driver_->is_emulated());
    const char* const source = std::getenv("ASSAY_SOURCE_DIR");
    source_ = source == nullptr ? "." : source;
  }

  void OpenDevice() {
    absl::StatusOr<std::unique_ptr<BenchDevice>> device = BenchDevice::Open(driver_.get(), 0);
    ASSERT_OK(device);
    device_ = *std::move(device);
  }

  absl::StatusOr<KernelOutcome> Run(const std::string& path, const std::string& workload,
                                    int timed_runs) {
    CatalogueOptions options;
    options.problems = source_ + "/kernels/problems";
    Catalogue catalogue(options);
    ASSAY_ASSIGN_OR_RETURN(const GpuCandidate candidate, catalogue.Load(source_ + "/" + path));
    v1::WorkloadSelector selector;
    ASSAY_RETURN_IF_ERROR(ParseWorkloadSelector(workload, &selector));
    ASSAY_ASSIGN_OR_RETURN(workload_, ResolveSelector(*candidate.problem, selector));
    ASSAY_ASSIGN_OR_RETURN(inputs_, MakeInputs(*candidate.problem, workload_, 7));
    KernelJob job;
    job.spec = &candidate.candidate->spec();
    job.configuration = &candidate.configuration;
    job.ptx = &candidate.ptx;
    job.workload = &workload_;
    job.inputs = &inputs_;
    GpuTarget target;
    target.driver = driver_.get();
    target.guard_zones = true;
    return RunKernels(target, job, timed_runs);
  }

  std::unique_ptr<CudaDriver> driver_;
  std::unique_ptr<BenchDevice> device_;
  std::string source_;
  ResolvedWorkload workload_;
  TensorBytes inputs_;
};

double HighestRate(const v1::Calibration& calibration, const std::string& kernel,
                   const std::string& level) {
  double rate = 0;
  for (const v1::CeilingPoint& point : calibration.points()) {
    if (point.kernel() == kernel && point.level() == level) {
      rate = std::max(rate, point.rate_per_second());
    }
  }
  return rate;
}

TEST_F(GpuTest, CeilingsArePositiveAndOrdered) {
  OpenDevice();
  GpuCalibrateOptions options;
  options.facts = device_->facts();
  options.timer = device_.get();
  options.time_max = absl::Seconds(40);
  v1::Calibration calibration;
  ASSERT_OK(CalibrateGpu(options, &calibration));
  for (const std::string& text : calibration.left_out())
    std::printf("left out: %s\n", text.c_str());
  for (const v1::CeilingPoint& point : calibration.points()) {
    EXPECT_GT(point.rate_per_second(), 0) << point.ShortDebugString();
  }
  for (const char* const stream : {"read", "copy", "triad"}) {
    SCOPED_TRACE(stream);
    EXPECT_GT(HighestRate(calibration, stream, "DRAM"), 0);
    if (options.facts.l2_bytes == 0) continue;
    EXPECT_GT(HighestRate(calibration, stream, "L2"), HighestRate(calibration, stream, "DRAM"));
  }
  const double fma_f32 = HighestRate(calibration, "fma_f32", "");
  EXPECT_GT(fma_f32, 0);
  EXPECT_GE(fma_f32 * 1.05, HighestRate(calibration, "fma_f64", ""));
  EXPECT_GT(HighestRate(calibration, "mma_f16", ""), fma_f32);
  EXPECT_GT(HighestRate(calibration, "mma_int8", ""), fma_f32);
  EXPECT_GT(calibration.launch_interval_ns(), 0);
  EXPECT_GT(calibration.launch_ns(), 0);
  EXPECT_LT(calibration.launch_ns(), 1e6);
}

TEST_F(GpuTest, AKnownKernelsOutput) {
  ASSERT_OK_AND_ASSIGN(
      const KernelOutcome outcome,
      Run("kernels/problems/vector_add/candidates/ptx_plain.ptx", "large_prime", 5));
  ASSERT_EQ(workload_.tensors.size(), 3u);
  const size_t count = static_cast<size_t>(workload_.tensors[0].elements);
  size_t wrong = 0;
  for (size_t i = 0; i < count; ++i) {
    float a = 0;
    float b = 0;
    float c = 0;
    std::memcpy(&a, inputs_[0].data() + i * sizeof a, sizeof a);
    std::memcpy(&b, inputs_[1].data() + i * sizeof b, sizeof b);
    std::memcpy(&c, outcome.outputs[2].data() + i * sizeof c, sizeof c);
    if (a + b != c) ++wrong;
  }
  EXPECT_EQ(wrong, 0u) << "of " << count;
  ASSERT_EQ(outcome.times_ns.size(), 5u);
  for (const double ns : outcome.times_ns) EXPECT_GT(ns, 0);
}

TEST_F(GpuTest, AWriteBehindABufferBreaksItsGuardZone) {
  EXPECT_THAT(Run("tests/gpu/planted/vector_add_past_end.ptx", "prime", 0),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("past the end of c")));
}

// Some 200 ms of one kernel: the host's clock sees the same and a little more.
TEST_F(GpuTest, EventsAgreeWithTheHostsClock) {
  OpenDevice();
  const BenchKernel kernel = DelayBench();
  BenchShape shape = {static_cast<uint32_t>(device_->facts().multiprocessors), 128, 1 << 16, 1};
  ASSERT_OK_AND_ASSIGN(std::vector<double> times, device_->Time(kernel, shape, 1, 3));
  const double once_ns = *std::min_element(times.begin(), times.end());
  ASSERT_GT(once_ns, 0);
  const int launches = std::clamp(static_cast<int>(200e6 / once_ns), 1, 2000);
  const auto start = std::chrono::steady_clock::now();
  ASSERT_OK_AND_ASSIGN(times, device_->Time(kernel, shape, launches, 1));
  const std::chrono::duration<double, std::nano> wall = std::chrono::steady_clock::now() - start;
  EXPECT_LT(times[0], wall.count());
  // Beside it there is one untimed launch, and the delay.
  EXPECT_GT(times[0] + once_ns, 0.8 * wall.count());
}

TEST_F(GpuTest, NvmlKnowsTheDevice) {
  OpenDevice();
  Nvml::Options options;
  options.uuid = device_->facts().uuid;
  options.pci_bus_id = device_->facts().pci_bus_id;
  const absl::StatusOr<std::unique_ptr<Nvml>> nvml = Nvml::Open(options);
  if (absl::IsUnavailable(nvml.status())) GTEST_SKIP() << nvml.status().message();
  ASSERT_OK(nvml);
  const std::optional<DeviceHealth> health = (*nvml)->Sample();
  ASSERT_TRUE(health.has_value());
  if (health->sm_clock_mhz != 0) {
    EXPECT_GT(health->sm_clock_mhz, 100);
    EXPECT_LT(health->sm_clock_mhz, 5000);
  }
  EXPECT_GE(health->temperature_c, 0);
  EXPECT_LT(health->temperature_c, 120);
  EXPECT_LT(health->power_w, 3000);
  EXPECT_FALSE((*nvml)->Facts().driver_version.empty());
}

}  // namespace
}  // namespace assay
