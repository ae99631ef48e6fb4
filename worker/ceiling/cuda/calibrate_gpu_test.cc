// The sweep over configurations, on a device that is a formula.
#include "worker/ceiling/cuda/calibrate_gpu.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "assay/v1/evaluation.pb.h"
#include "assay/v1/fleet.pb.h"
#include "assay/v1/problem.pb.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "kernels/problem.h"
#include "worker/ceiling/ceiling.h"

namespace assay {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr int64_t kL2 = 40 << 20;
constexpr double kLaunchNs = 2000;
constexpr double kFmaRate = 20e12;
constexpr double kMmaRate = 300e12;
constexpr double kL2Rate = 5e12;
constexpr double kDramRate = 1.5e12;

// Rates of the best configuration; 16-byte accesses and 4 blocks a multiprocessor are it for
// streams, 256 threads for the rest. Of seven samples in a row one is half as long again.
class ModelTimer : public BenchTimer {
 public:
  absl::StatusOr<std::vector<double>> Time(const BenchKernel& kernel, const BenchShape& shape,
                                           int launches, int samples) override {
    ++calls_;
    if (clock_ != nullptr) clock_->Advance(call_time_);
    if (fails_ && fails_(kernel)) return absl::InternalError("ILLEGAL_INSTRUCTION");
    const double ns = Nanoseconds(kernel, shape) * launches;
    std::vector<double> times;
    for (int i = 0; i < samples; ++i) times.push_back(i % 7 == 3 ? ns * 1.5 : ns);
    for (const double time : times) total_ns_ += time;
    if (kernel.arrays > 0) {
      array_bytes_max_ = std::max(array_bytes_max_, StreamArrayBytes(kernel, shape));
    }
    return times;
  }

  static double Nanoseconds(const BenchKernel& kernel, const BenchShape& shape) {
    if (kernel.name == "launch") return kLaunchNs;
    const BenchWork work = WorkOf(kernel, shape);
    if (kernel.arrays > 0) {
      const double footprint = static_cast<double>(StreamArrayBytes(kernel, shape)) * kernel.arrays;
      double rate = footprint <= kL2 ? kL2Rate : kDramRate;
      if (kernel.variant.substr(0, 2) != "16") rate *= 0.7;
      if (shape.grid != 4 * 100) rate *= 0.8;
      return static_cast<double>(work.bytes()) / rate * 1e9;
    }
    double rate = kernel.name.substr(0, 3) == "mma" ? kMmaRate : kFmaRate;
    if (shape.block != 256) rate *= 0.9;
    return static_cast<double>(work.operations()) / rate * 1e9;
  }

  std::function<bool(const BenchKernel&)> fails_;
  FakeClock* clock_ = nullptr;
  absl::Duration call_time_;
  int calls_ = 0;
  double total_ns_ = 0;
  uint64_t array_bytes_max_ = 0;
};

class CalibrateGpuTest : public testing::Test {
 protected:
  GpuCalibrateOptions Options(int arch) {
    GpuCalibrateOptions options;
    options.facts.name = "Model";
    options.facts.arch = arch;
    options.facts.multiprocessors = 100;
    options.facts.l2_bytes = kL2;
    options.facts.driver_version = 13010;
    options.timer = &timer_;
    options.clock = &clock_;
    options.warm_up = absl::Milliseconds(20);
    return options;
  }

  std::vector<v1::CeilingPoint> PointsOf(const std::string& kernel) const {
    std::vector<v1::CeilingPoint> points;
    for (const v1::CeilingPoint& point : calibration_.points()) {
      if (point.kernel() == kernel) points.push_back(point);
    }
    return points;
  }

  std::vector<std::string> LeftOut() const {
    return {calibration_.left_out().begin(), calibration_.left_out().end()};
  }

  FakeClock clock_;
  ModelTimer timer_;
  v1::Calibration calibration_;
};

TEST_F(CalibrateGpuTest, MeasuresStreamsInBothLevels) {
  ASSERT_OK(CalibrateGpu(Options(80), &calibration_));
  for (const char* const kernel : {"read", "write", "copy", "triad"}) {
    SCOPED_TRACE(kernel);
    const std::vector<v1::CeilingPoint> points = PointsOf(kernel);
    ASSERT_EQ(points.size(), 4u);
    const double arrays = std::string(kernel) == "triad"  ? 3
                          : std::string(kernel) == "copy" ? 2
                                                          : 1;
    for (const v1::CeilingPoint& point : points) {
      const bool cached = point.level() == "L2";
      EXPECT_EQ(cached ? "L2" : "DRAM", point.level());
      EXPECT_EQ(point.cores(), kWholeDevice);
      EXPECT_NEAR(point.rate_per_second(), cached ? kL2Rate : kDramRate, 1e6);
      EXPECT_THAT(point.configuration(), StartsWith("16 bytes an access"));
      EXPECT_THAT(point.configuration(), HasSubstr("grid 400, block 256"));
      EXPECT_EQ(point.sample_count(), 30);
      EXPECT_EQ(point.spread_ratio(), 0);  // the outliers are outside of the quartiles
      const auto footprint = static_cast<double>(point.footprint_bytes());
      if (cached) {
        EXPECT_LE(footprint, kL2 / 2);
        EXPECT_GE(footprint, kL2 / 4 * 0.875);
      } else {
        EXPECT_GE(footprint, arrays * 4 * kL2);
      }
    }
  }
  EXPECT_GE(timer_.array_bytes_max_, uint64_t{16} * kL2);
  EXPECT_THAT(LeftOut(), IsEmpty());
}

TEST_F(CalibrateGpuTest, MeasuresEveryUnitAndTheLaunch) {
  ASSERT_OK(CalibrateGpu(Options(80), &calibration_));
  for (const char* const kernel : {"fma_f32", "fma_f64", "fma_f16", "mma_f16", "mma_f16_acc_f16",
                                   "mma_bf16", "mma_tf32", "mma_int8", "mma_f64"}) {
    SCOPED_TRACE(kernel);
    const std::vector<v1::CeilingPoint> points = PointsOf(kernel);
    ASSERT_EQ(points.size(), 1u);
    EXPECT_NEAR(points[0].rate_per_second(), kernel[0] == 'm' ? kMmaRate : kFmaRate, 1e6);
    EXPECT_THAT(points[0].configuration(), HasSubstr("block 256"));
    EXPECT_EQ(points[0].footprint_bytes(), 0);
    EXPECT_EQ(points[0].level(), "");
  }
  EXPECT_EQ(calibration_.launch_ns(), kLaunchNs);
  EXPECT_EQ(calibration_.launch_interval_ns(), kLaunchNs);
  EXPECT_EQ(calibration_.method(),
            "assay-gpu-microbench-v1 Model (sm_80), driver 13.1, medians of 30 launches between "
            "events, the fastest of all configurations");
  EXPECT_EQ(calibration_.measure_time().seconds(), absl::ToUnixSeconds(clock_.Now()));
  EXPECT_FALSE(calibration_.name().empty());
}

TEST_F(CalibrateGpuTest, TheResultMakesCeilings) {
  ASSERT_OK(CalibrateGpu(Options(80), &calibration_));
  WorkCost cost;
  cost.unit = v1::WorkModel::FLOP_F64;
  cost.operations = 300e9;
  cost.bytes_read = 1e6;
  cost.bytes_written = 1e6;
  cost.footprint_bytes = 2e6;
  v1::Ceiling ceiling;
  ComputeCeiling(cost, calibration_, calibration_.launch_ns(), kWholeDevice, &ceiling);
  EXPECT_EQ(ceiling.bound(), v1::Ceiling::COMPUTE);
  EXPECT_NEAR(ceiling.time_ns(), 1e6, 1);
  EXPECT_THAT(ceiling.basis(), HasSubstr("mma_f64 whole device"));
  EXPECT_EQ(ceiling.calibration(), calibration_.name());
  // Smaller than any footprint that was measured: the L2's rate, and then the launch.
  EXPECT_NEAR(ceiling.memory_time_ns(), 2e6 / kL2Rate * 1e9, 1e-3);
}

TEST_F(CalibrateGpuTest, SaysWhatIsMissing) {
  ASSERT_OK(CalibrateGpu(Options(75), &calibration_));
  EXPECT_THAT(PointsOf("mma_bf16"), IsEmpty());
  EXPECT_THAT(LeftOut(), Contains("mma_bf16: sm_75 has none"));
}

TEST_F(CalibrateGpuTest, WhatFailsIsLeftOutWithItsReason) {
  timer_.fails_ = [](const BenchKernel& kernel) { return kernel.name == "mma_tf32"; };
  ASSERT_OK(CalibrateGpu(Options(80), &calibration_));
  EXPECT_THAT(PointsOf("mma_tf32"), IsEmpty());
  EXPECT_EQ(PointsOf("mma_f16").size(), 1u);
  EXPECT_THAT(LeftOut(), testing::ElementsAre("mma_tf32: ILLEGAL_INSTRUCTION"));
}

TEST_F(CalibrateGpuTest, AVariantThatFailsLeavesTheOther) {
  timer_.fails_ = [](const BenchKernel& kernel) { return kernel.variant == "m16n8k16"; };
  ASSERT_OK(CalibrateGpu(Options(90), &calibration_));
  ASSERT_EQ(PointsOf("mma_f64").size(), 1u);
  EXPECT_THAT(PointsOf("mma_f64")[0].configuration(), StartsWith("m8n8k4"));
  EXPECT_THAT(LeftOut(), Contains("mma_bf16: ILLEGAL_INSTRUCTION"));
}

TEST_F(CalibrateGpuTest, NothingMeasuredIsAnError) {
  timer_.fails_ = [](const BenchKernel&) { return true; };
  EXPECT_THAT(CalibrateGpu(Options(80), &calibration_),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("ILLEGAL_INSTRUCTION")));
}

TEST_F(CalibrateGpuTest, StopsWhenTimeIsUpAndSaysWhatWasNotDone) {
  timer_.clock_ = &clock_;
  timer_.call_time_ = absl::Milliseconds(10);
  GpuCalibrateOptions options = Options(80);
  options.time_max = absl::Seconds(2);
  const absl::Duration start = clock_.Monotonic();
  ASSERT_OK(CalibrateGpu(options, &calibration_));
  // At most one point begins just before, of 31 calls: one a configuration, and the best once more.
  EXPECT_LE(clock_.Monotonic() - start, absl::Milliseconds(2000 + 310));
  EXPECT_FALSE(PointsOf("read").empty());
  EXPECT_THAT(PointsOf("mma_f64"), IsEmpty());
  EXPECT_THAT(LeftOut(), Contains("mma_f64: no time left of 2s"));
}

TEST_F(CalibrateGpuTest, ADeviceWithoutL2HasDramAlone) {
  GpuCalibrateOptions options = Options(80);
  options.facts.l2_bytes = 0;
  ASSERT_OK(CalibrateGpu(options, &calibration_));
  for (const v1::CeilingPoint& point : PointsOf("copy")) EXPECT_EQ(point.level(), "DRAM");
  EXPECT_GE(timer_.array_bytes_max_, uint64_t{1000} << 20);
}

TEST_F(CalibrateGpuTest, KeepsTheStateBeforeAndAfter) {
  GpuCalibrateOptions options = Options(80);
  int samples = 0;
  options.health = [&samples]() -> std::optional<DeviceHealth> {
    ++samples;
    DeviceHealth health;
    health.sm_clock_mhz = samples == 1 ? 1980 : 1900;
    health.memory_clock_mhz = 2600;
    health.temperature_c = 40 + samples;
    health.power_w = 300;
    health.throttle_bits = samples == 1   ? kThrottleSyncBoost
                           : samples == 5 ? kThrottlePowerCap
                                          : kThrottleIdle;
    return health;
  };
  ASSERT_OK(CalibrateGpu(options, &calibration_));
  EXPECT_EQ(calibration_.state_before().sm_clock_mhz(), 1980);
  EXPECT_EQ(calibration_.state_before().throttle_bits(), kThrottleSyncBoost);
  EXPECT_EQ(calibration_.state_after().sm_clock_mhz(), 1900);
  EXPECT_EQ(calibration_.state_after().throttle_bits(), kThrottlePowerCap);
  EXPECT_GT(samples, 10);
}

TEST_F(CalibrateGpuTest, WarmsUpByTheDevicesOwnTime) {
  GpuCalibrateOptions options = Options(80);
  options.warm_up = absl::ZeroDuration();
  ASSERT_OK(CalibrateGpu(options, &calibration_));
  const double without = timer_.total_ns_;
  timer_.total_ns_ = 0;
  options.warm_up = absl::Milliseconds(700);
  ASSERT_OK(CalibrateGpu(options, &calibration_));
  EXPECT_GE(timer_.total_ns_ - without, 700e6);
}

}  // namespace
}  // namespace assay
