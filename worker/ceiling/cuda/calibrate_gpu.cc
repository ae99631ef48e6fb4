#include "worker/ceiling/cuda/calibrate_gpu.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "assay/v1/fleet.pb.h"
#include "base/status.h"
#include "base/strings.h"
#include "worker/ceiling/calibrate.h"
#include "worker/ceiling/ceiling.h"
#include "worker/ceiling/cuda/bench_kernels.h"
#include "worker/measure/statistics.h"

namespace assay {
namespace {

constexpr double kNsPerSecond = 1e9;
// Of a configuration that is looked at, and of the best one.
constexpr int kLookSamples = 5;
constexpr int kSamples = 30;
constexpr int kBackToBack = 100;
constexpr uint32_t kStreamBlock = 256;
constexpr uint32_t kStreamBlocksPerMultiprocessor[] = {1, 2, 4, 8, 16};
constexpr double kTouchedShareMin = 0.875;  // of an array, by the rounds that fit into it
// Traffic of a launch whose arrays lie in the L2: enough that its start and end do not count.
constexpr uint64_t kCacheTraffic = uint64_t{1} << 30;
constexpr int64_t kArrayBytesWithoutL2 = int64_t{256} << 20;
constexpr int64_t kArraysOfL2[] = {4, 16};  // bytes of one array in DRAM, in sizes of the L2
constexpr int64_t kPartsOfL2[] = {4, 2};    // footprint in the L2: a quarter, a half
constexpr BenchShape kComputeShapes[] = {{1, 256}, {2, 256}, {4, 256}, {4, 128}, {1, 1024}};
constexpr double kComputeNs = 1e6;  // that a launch is made to take
constexpr uint32_t kRoundsFirst = 64;
constexpr uint32_t kRoundsMax = 1 << 22;
constexpr int kWarmUpSpans = 4096;

void SetState(const DeviceHealth& health, v1::Calibration::DeviceState* state) {
  state->set_sm_clock_mhz(health.sm_clock_mhz);
  state->set_memory_clock_mhz(health.memory_clock_mhz);
  state->set_temperature_c(health.temperature_c);
  state->set_power_w(health.power_w);
  state->set_throttle_bits(health.throttle_bits);
}

struct Trial {
  BenchKernel kernel;
  BenchShape shape;
};

class GpuCalibrator {
 public:
  GpuCalibrator(const GpuCalibrateOptions& options, v1::Calibration* out)
      : options_(options),
        out_(*out),
        multiprocessors_(static_cast<uint32_t>(std::max(1, options.facts.multiprocessors))) {}

  absl::Status Run() {
    deadline_ = options_.clock->Monotonic() + options_.time_max;
    WarmUp();
    if (const auto health = Health()) SetState(*health, out_.mutable_state_before());
    throttle_bits_ = 0;
    Launches();
    for (const StreamKind kind : kStreamKinds) Streams(kind);
    const ComputeBenches benches = ComputeBenchesOf(options_.facts.arch);
    // Kernels of one name are variants of one point.
    for (size_t i = 0; i < benches.kernels.size();) {
      std::vector<BenchKernel> variants;
      const std::string& name = benches.kernels[i].name;
      while (i < benches.kernels.size() && benches.kernels[i].name == name) {
        variants.push_back(benches.kernels[i++]);
      }
      Compute(variants);
    }
    for (const std::string& text : benches.left_out) out_.add_left_out(text);
    if (auto health = Health()) {
      health->throttle_bits = throttle_bits_;
      SetState(*health, out_.mutable_state_after());
    }
    return out_.points().empty() ? failure_ : absl::OkStatus();
  }

 private:
  std::optional<DeviceHealth> Health() {
    if (!options_.health) return std::nullopt;
    const std::optional<DeviceHealth> health = options_.health();
    // Between launches a device is idle: that slows nothing down.
    if (health.has_value()) throttle_bits_ |= health->throttle_bits & ~kThrottleIdle;
    return health;
  }

  // False, and `what` is left out, when time is up.
  bool HasTime(const std::string& what) {
    if (options_.clock->Monotonic() < deadline_) return true;
    out_.add_left_out(
        absl::StrCat(what, ": no time left of ", absl::FormatDuration(options_.time_max)));
    return false;
  }

  void LeaveOut(const std::string& what, const absl::Status& why) {
    out_.add_left_out(absl::StrCat(what, ": ", why.message()));
    if (failure_.ok()) failure_ = why;
  }

  absl::StatusOr<double> MedianTime(const Trial& trial, int launches, int samples) {
    ASSAY_ASSIGN_OR_RETURN(std::vector<double> times,
                           options_.timer->Time(trial.kernel, trial.shape, launches, samples));
    return Median(std::move(times));
  }

  void WarmUp() {
    const BenchKernel kernel = DelayBench();
    BenchShape shape = {multiprocessors_ * 4, 256, 4096, 1};
    double left_ns = absl::ToDoubleNanoseconds(options_.warm_up);
    for (int i = 0; i < kWarmUpSpans && left_ns > 0; ++i) {
      if (options_.clock->Monotonic() >= deadline_) return;
      const auto times = options_.timer->Time(kernel, shape, 1, 1);
      if (!times.ok()) return;  // the first point says why
      for (const double ns : *times) left_ns -= ns;
    }
  }

  void Launches() {
    if (!HasTime("launch")) return;
    const Trial empty = {EmptyBench(), BenchShape{}};
    const auto once = MedianTime(empty, 1, kSamples);
    const auto many = MedianTime(empty, kBackToBack, kSamples);
    if (!once.ok() || !many.ok())
      return LeaveOut("launch", once.ok() ? many.status() : once.status());
    out_.set_launch_ns(*once);
    out_.set_launch_interval_ns(*many / kBackToBack);
  }

  // The fastest of `trials` in a first look, by work over time; then its own samples.
  void Measure(const std::string& what, const std::vector<Trial>& trials,
               const std::string& level) {
    const Trial* best = nullptr;
    double best_rate = 0;
    absl::Status failure;
    for (const Trial& trial : trials) {
      const absl::StatusOr<double> ns = MedianTime(trial, 1, kLookSamples);
      if (!ns.ok()) {
        failure = ns.status();
        continue;
      }
      const double rate = *ns > 0 ? WorkToCount(trial) / *ns : 0;
      if (rate <= best_rate) continue;
      best = &trial;
      best_rate = rate;
    }
    if (best == nullptr) {
      if (failure.ok()) failure = absl::InternalError("no configuration took any time");
      return LeaveOut(what, failure);
    }
    const auto times = options_.timer->Time(best->kernel, best->shape, 1, kSamples);
    if (!times.ok()) return LeaveOut(what, times.status());
    AddPoint(*best, *times, level);
    (void)Health();
  }

  static double WorkToCount(const Trial& trial) {
    const BenchWork work = WorkOf(trial.kernel, trial.shape);
    return static_cast<double>(trial.kernel.arrays > 0 ? work.bytes() : work.operations());
  }

  void AddPoint(const Trial& best, std::vector<double> times, const std::string& level) {
    std::sort(times.begin(), times.end());
    const double median = SortedQuantile(times, 0.5);
    v1::CeilingPoint& point = *out_.add_points();
    point.set_kernel(best.kernel.name);
    point.set_cores(kWholeDevice);
    point.set_footprint_bytes(static_cast<int64_t>(StreamArrayBytes(best.kernel, best.shape) *
                                                   static_cast<uint64_t>(best.kernel.arrays)));
    point.set_rate_per_second(WorkToCount(best) / median * kNsPerSecond);
    point.set_level(level);
    point.set_configuration(absl::StrCat(best.kernel.variant, ", grid ", best.shape.grid,
                                         ", block ", best.shape.block));
    point.set_sample_count(static_cast<int>(times.size()));
    point.set_spread_ratio((SortedQuantile(times, 0.75) - SortedQuantile(times, 0.25)) / median);
  }

  void Streams(StreamKind kind) {
    const int64_t l2 = options_.facts.l2_bytes;
    const int arrays = StreamBench(kind, kStreamVectorBytes[0], 1).arrays;
    for (const int64_t part : kPartsOfL2) {
      if (l2 > 0) Stream(kind, l2 / part / arrays, "L2");
    }
    for (const int64_t times : kArraysOfL2) {
      const int64_t bytes = l2 > 0 ? times * l2 : times * kArrayBytesWithoutL2 / kArraysOfL2[0];
      Stream(kind, bytes, "DRAM");
    }
  }

  void Stream(StreamKind kind, int64_t array_bytes, const std::string& level) {
    const bool cached = level == "L2";
    const auto bytes = static_cast<uint64_t>(array_bytes);
    std::vector<Trial> trials;
    for (const int vector_bytes : kStreamVectorBytes) {
      for (const int unroll : kStreamUnrolls) {
        const BenchKernel kernel = StreamBench(kind, vector_bytes, unroll);
        for (const uint32_t blocks : kStreamBlocksPerMultiprocessor) {
          BenchShape shape = {multiprocessors_ * blocks, kStreamBlock, 1, 1};
          const uint64_t round = StreamArrayBytes(kernel, shape);
          // At most `bytes` in the L2, at least so many in DRAM.
          shape.rounds =
              static_cast<uint32_t>(cached ? bytes / round : (bytes + round - 1) / round);
          if (static_cast<double>(round * shape.rounds) <
              kTouchedShareMin * static_cast<double>(bytes)) {
            continue;
          }
          if (cached) {
            const uint64_t pass = WorkOf(kernel, shape).bytes();
            shape.passes = static_cast<uint32_t>((kCacheTraffic + pass - 1) / pass);
          }
          trials.push_back({kernel, shape});
        }
      }
    }
    const std::string what = absl::StrCat(StreamBench(kind, kStreamVectorBytes[0], 1).name, " ",
                                          level, " with arrays of ", array_bytes, " bytes");
    if (trials.empty()) {
      return LeaveOut(what, absl::FailedPreconditionError("smaller than what one round touches"));
    }
    if (HasTime(what)) Measure(what, trials, level);
  }

  // `variants` have one name.
  void Compute(const std::vector<BenchKernel>& variants) {
    const std::string& what = variants[0].name;
    if (!HasTime(what)) return;
    std::vector<Trial> trials;
    absl::Status failure;
    for (const BenchKernel& kernel : variants) {
      for (const BenchShape& form : kComputeShapes) {
        Trial trial = {kernel, form};
        trial.shape.grid *= multiprocessors_;
        trial.shape.rounds = kRoundsFirst;
        const absl::StatusOr<double> ns = MedianTime(trial, 1, 1);
        if (!ns.ok()) {
          failure = ns.status();
          continue;
        }
        const double rounds = kRoundsFirst * std::max(1.0, kComputeNs / std::max(1.0, *ns));
        trial.shape.rounds = static_cast<uint32_t>(std::min<double>(kRoundsMax, rounds));
        trials.push_back(std::move(trial));
      }
    }
    if (trials.empty()) return LeaveOut(what, failure);
    Measure(what, trials, "");
  }

  const GpuCalibrateOptions& options_;
  v1::Calibration& out_;
  const uint32_t multiprocessors_;
  absl::Duration deadline_;
  uint64_t throttle_bits_ = 0;
  absl::Status failure_;
};

}  // namespace

absl::Status CalibrateGpu(const GpuCalibrateOptions& options, v1::Calibration* calibration) {
  const BenchDeviceFacts& facts = options.facts;
  calibration->Clear();
  calibration->set_method(absl::StrCat(
      Av(kGpuCalibrationMethod), " ", facts.name, " (sm_", facts.arch, "), driver ",
      facts.driver_version / 1000, ".", facts.driver_version % 1000 / 10, ", medians of ", kSamples,
      " launches between events, the fastest of all configurations"));
  calibration->mutable_measure_time()->set_seconds(absl::ToUnixSeconds(options.clock->Now()));
  ASSAY_RETURN_IF_ERROR(GpuCalibrator(options, calibration).Run());
  NameCalibration(calibration);
  return absl::OkStatus();
}

}  // namespace assay
