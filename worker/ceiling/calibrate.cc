#include "worker/ceiling/calibrate.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "assay/v1/fleet.pb.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/status.h"
#include "base/strings.h"
#include "worker/ceiling/microbench.h"

namespace assay {
namespace {

constexpr size_t kFileBytesMax = 1 << 20;
constexpr int64_t kDefaultL1 = 32 << 10;
constexpr int64_t kDefaultL2 = 512 << 10;
constexpr int64_t kDefaultL3 = 16 << 20;
constexpr int64_t kFmaIterations = 20'000;
constexpr int64_t kWarmBytes = 4 << 20;  // traffic of one timed run of a small stream
constexpr size_t kAlignment = 64;

double SecondsNow() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Free {
  void operator()(double* p) const { std::free(p); }
};
using Buffer = std::unique_ptr<double, Free>;

Buffer MakeBuffer(size_t count) {
  const size_t bytes = (count * sizeof(double) + kAlignment - 1) / kAlignment * kAlignment;
  Buffer buffer(static_cast<double*>(std::aligned_alloc(kAlignment, bytes)));
  if (buffer != nullptr) std::fill_n(buffer.get(), count, 1.0);
  return buffer;
}

// Pins the calling thread for its lifetime and gives the former mask back.
class Pinned {
 public:
  explicit Pinned(int core) {
    CPU_ZERO(&before_);
    known_ = sched_getaffinity(0, sizeof before_, &before_) == 0;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    sched_setaffinity(0, sizeof set, &set);
  }
  ~Pinned() {
    if (known_) sched_setaffinity(0, sizeof before_, &before_);
  }

 private:
  cpu_set_t before_;
  bool known_ = false;
};

// One run of a microbenchmark on one core; returns what it did (bytes or operations).
using Work = std::function<double(int thread)>;

// The best rate over repeated runs on `cores`, all started together.
double BestRate(const std::vector<int>& cores, absl::Duration time, const Work& work) {
  const int count = static_cast<int>(cores.size());
  const double limit = absl::ToDoubleSeconds(time);
  if (count == 1) {
    const Pinned pinned(cores[0]);
    double best = 0;
    work(0);
    const double start = SecondsNow();
    do {
      const double t0 = SecondsNow();
      const double done = work(0);
      best = std::max(best, done / (SecondsNow() - t0));
    } while (SecondsNow() - start < limit);
    return best;
  }
  // Rounds: every thread does the same work; the slowest decides the round's rate.
  std::atomic<int> arrived{0};
  std::atomic<int> round{0};
  std::atomic<bool> stop{false};
  std::vector<double> done(cores.size());
  std::vector<std::thread> threads;
  for (int i = 1; i < count; ++i) {
    threads.emplace_back([&, i] {
      const Pinned pinned(cores[static_cast<size_t>(i)]);
      int seen = 0;
      while (true) {
        while (round.load(std::memory_order_acquire) == seen) std::this_thread::yield();
        if (stop.load()) return;
        ++seen;
        done[static_cast<size_t>(i)] = work(i);
        arrived.fetch_add(1, std::memory_order_release);
      }
    });
  }
  const Pinned pinned(cores[0]);
  double best = 0;
  const double start = SecondsNow();
  do {
    arrived.store(0);
    const double t0 = SecondsNow();
    round.fetch_add(1, std::memory_order_release);
    done[0] = work(0);
    while (arrived.load(std::memory_order_acquire) < count - 1) std::this_thread::yield();
    const double elapsed = SecondsNow() - t0;
    double total = 0;
    for (const double part : done) total += part;
    best = std::max(best, total / elapsed);
  } while (SecondsNow() - start < limit);
  stop.store(true);
  round.fetch_add(1, std::memory_order_release);
  for (std::thread& thread : threads) thread.join();
  return best;
}

// The arrays of one core, sized so that one kernel touches `footprint` bytes.
struct Arrays {
  Buffer a, b, c;
  size_t count = 0;
};

struct StreamKernel {
  const char* name;
  int arrays;  // touched
  void (*run)(const MicrobenchSet& set, const Arrays& arrays, bool nt, double* sink);
};

void RunRead(const MicrobenchSet& set, const Arrays& arrays, bool nt, double* sink) {
  *sink += set.read(arrays.a.get(), arrays.count);
}
void RunWrite(const MicrobenchSet& set, const Arrays& arrays, bool nt, double* sink) {
  (nt ? set.write_nt : set.write)(arrays.a.get(), 1.5, arrays.count);
}
void RunCopy(const MicrobenchSet& set, const Arrays& arrays, bool nt, double* sink) {
  (nt ? set.copy_nt : set.copy)(arrays.a.get(), arrays.b.get(), arrays.count);
}
void RunTriad(const MicrobenchSet& set, const Arrays& arrays, bool nt, double* sink) {
  (nt ? set.triad_nt : set.triad)(arrays.a.get(), arrays.b.get(), arrays.c.get(), 0.5,
                                  arrays.count);
}

constexpr StreamKernel kStreams[] = {
    {"read", 1, RunRead}, {"write", 1, RunWrite}, {"copy", 2, RunCopy}, {"triad", 3, RunTriad}};

class Calibrator {
 public:
  Calibrator(const CalibrateOptions& options, v1::Calibration* out)
      : options_(options), out_(out), set_(BestMicrobench()) {
    l1_ = options.machine.caches.l1_bytes > 0 ? options.machine.caches.l1_bytes : kDefaultL1;
    l2_ = options.machine.caches.l2_bytes > 0 ? options.machine.caches.l2_bytes : kDefaultL2;
    l3_ = options.machine.caches.l3_bytes > 0 ? options.machine.caches.l3_bytes : kDefaultL3;
  }

  absl::Status Run() {
    std::vector<int> cores = options_.machine.cores;
    if (cores.empty()) return absl::FailedPreconditionError("no core to calibrate on is known");
    // The core on which guests run.
    ASSAY_RETURN_IF_ERROR(RunOn({cores.back()}));
    if (options_.all_cores && cores.size() > 1) ASSAY_RETURN_IF_ERROR(RunOn(cores));
    return absl::OkStatus();
  }

 private:
  absl::Status RunOn(const std::vector<int>& cores) {
    const int64_t count = static_cast<int64_t>(cores.size());
    for (const int64_t footprint : Footprints(count)) {
      ASSAY_RETURN_IF_ERROR(Streams(cores, footprint));
    }
    Compute(cores);
    return absl::OkStatus();
  }

  // Of all cores together. L1 and L2 are each core's own, the last level is shared.
  std::vector<int64_t> Footprints(int64_t cores) const {
    std::vector<int64_t> out = {l1_ / 2 * cores, l1_ * 3 / 4 * cores, l2_ / 2 * cores,
                                l2_ * 3 / 4 * cores};
    for (const int64_t shared : {l3_ / 2, l3_, 2 * l3_, 4 * l3_}) {
      if (shared > l2_ * cores) out.push_back(shared);
    }
    for (int64_t& footprint : out) {
      footprint = std::min(footprint, options_.footprint_bytes_max);
    }
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

  std::string Level(int64_t footprint, int64_t cores) const {
    if (footprint <= l1_ * cores) return "L1";
    if (footprint <= l2_ * cores) return "L2";
    return footprint <= l3_ ? "L3" : "DRAM";
  }

  absl::Status Streams(const std::vector<int>& cores, int64_t footprint) {
    const int64_t share = footprint / static_cast<int64_t>(cores.size());
    for (const StreamKernel& kernel : kStreams) {
      const size_t unit = kStreamBlock * sizeof(double) * static_cast<size_t>(kernel.arrays);
      const size_t count = std::max<size_t>(1, static_cast<size_t>(share) / unit) * kStreamBlock;
      std::vector<Arrays> arrays(cores.size());
      for (Arrays& mine : arrays) {
        mine.count = count;
        mine.a = MakeBuffer(count);
        if (kernel.arrays > 1) mine.b = MakeBuffer(count);
        if (kernel.arrays > 2) mine.c = MakeBuffer(count);
        if (mine.a == nullptr || (kernel.arrays > 1 && mine.b == nullptr) ||
            (kernel.arrays > 2 && mine.c == nullptr)) {
          return absl::ResourceExhaustedError(
              absl::StrCat("no memory to calibrate with a footprint of ", footprint, " bytes"));
        }
      }
      AddPoint(kernel.name, cores.size(), footprint, StreamRate(cores, kernel, arrays));
    }
    return absl::OkStatus();
  }

  double StreamRate(const std::vector<int>& cores, const StreamKernel& kernel,
                    const std::vector<Arrays>& arrays) {
    const double bytes =
        static_cast<double>(arrays[0].count * sizeof(double)) * static_cast<double>(kernel.arrays);
    const int repeats = static_cast<int>(std::max(1.0, static_cast<double>(kWarmBytes) / bytes));
    double best = 0;
    for (const bool nt : {false, true}) {
      if (nt && kernel.run == RunRead) continue;
      std::vector<double> sinks(cores.size() * 8);  // a cache line each
      const Work work = [&](int thread) {
        for (int i = 0; i < repeats; ++i) {
          kernel.run(set_, arrays[static_cast<size_t>(thread)], nt,
                     &sinks[static_cast<size_t>(thread) * 8]);
        }
        return bytes * repeats;
      };
      best = std::max(best, BestRate(cores, options_.point_time, work));
    }
    return best;
  }

  void Compute(const std::vector<int>& cores) {
    AddPoint("fma_f32", cores.size(), 0, ComputeRate(cores, {&MicrobenchSet::fma_f32}));
    AddPoint("fma_f64", cores.size(), 0, ComputeRate(cores, {&MicrobenchSet::fma_f64}));
    AddPoint("madd_int8", cores.size(), 0,
             ComputeRate(cores, {&MicrobenchSet::madd_i8, &MicrobenchSet::madd_i16,
                                 &MicrobenchSet::dot_i8}));
  }

  using ComputeKernel = int64_t (*MicrobenchSet::*)(int64_t, double*);

  // The best of `kernels` over all sets: a narrower set can be faster.
  double ComputeRate(const std::vector<int>& cores, const std::vector<ComputeKernel>& kernels) {
    const MicrobenchSet* sets[3];
    const size_t set_count = RunnableMicrobenches(sets);
    double best = 0;
    for (size_t s = 0; s < set_count; ++s) {
      for (const ComputeKernel kernel : kernels) {
        const auto run = sets[s]->*kernel;
        if (run == nullptr) continue;
        std::vector<double> sinks(cores.size() * 8);
        const Work work = [&](int thread) {
          return static_cast<double>(run(kFmaIterations, &sinks[static_cast<size_t>(thread) * 8]));
        };
        best = std::max(best, BestRate(cores, options_.point_time, work));
      }
    }
    return best;
  }

  void AddPoint(const std::string& kernel, size_t cores, int64_t footprint, double rate) {
    v1::CeilingPoint& point = *out_->add_points();
    point.set_kernel(kernel);
    point.set_cores(static_cast<int32_t>(cores));
    point.set_footprint_bytes(footprint);
    point.set_rate_per_second(rate);
    if (footprint > 0) point.set_level(Level(footprint, static_cast<int64_t>(cores)));
  }

  const CalibrateOptions& options_;
  v1::Calibration* const out_;
  const MicrobenchSet& set_;
  int64_t l1_ = 0;
  int64_t l2_ = 0;
  int64_t l3_ = 0;
};

}  // namespace

void NameCalibration(v1::Calibration* calibration) {
  DigestBuilder digest;
  digest.Add(calibration->method()).Add(calibration->measure_time().seconds());
  for (const v1::CeilingPoint& point : calibration->points()) {
    digest.Add(point.kernel()).Add(int64_t{point.cores()}).Add(point.footprint_bytes());
    digest.Add(static_cast<int64_t>(point.rate_per_second()));
  }
  calibration->set_name(digest.Finish());
}

absl::Status Calibrate(const CalibrateOptions& options, v1::Calibration* calibration) {
  calibration->Clear();
  calibration->set_method(absl::StrCat(Av(kCalibrationMethod), " ", BestMicrobench().name,
                                       ", best of ", absl::FormatDuration(options.point_time),
                                       " a point, pinned"));
  calibration->mutable_measure_time()->set_seconds(absl::ToUnixSeconds(absl::Now()));
  ASSAY_RETURN_IF_ERROR(Calibrator(options, calibration).Run());
  NameCalibration(calibration);
  return absl::OkStatus();
}

void MergeCalibration(const v1::Calibration& other, v1::Calibration* calibration) {
  for (const v1::CeilingPoint& theirs : other.points()) {
    bool known = false;
    for (v1::CeilingPoint& ours : *calibration->mutable_points()) {
      if (ours.kernel() != theirs.kernel() || ours.cores() != theirs.cores() ||
          ours.footprint_bytes() != theirs.footprint_bytes()) {
        continue;
      }
      known = true;
      ours.set_rate_per_second(std::max(ours.rate_per_second(), theirs.rate_per_second()));
    }
    if (!known) *calibration->add_points() = theirs;
  }
  const auto shorter = [](double a, double b) { return a > 0 && b > 0 ? std::min(a, b) : a + b; };
  calibration->set_launch_ns(shorter(calibration->launch_ns(), other.launch_ns()));
  calibration->set_launch_interval_ns(
      shorter(calibration->launch_interval_ns(), other.launch_interval_ns()));
  NameCalibration(calibration);
}

std::string CalibrationPath(const std::string& state_directory, const MachineFacts& machine,
                            bool quick) {
  DigestBuilder digest;
  digest.Add(machine.model_name).Add(machine.microcode).Add(machine.kernel);
  digest.Add(kCalibrationMethod).Add(static_cast<int64_t>(machine.cores.size()));
  digest.Add(quick ? "quick" : "full");
  return absl::StrCat(state_directory, "/calibration-", digest.Finish().substr(0, 16), ".pb");
}

std::string GpuCalibrationPath(const std::string& state_directory, std::string_view uuid,
                               int driver_version) {
  DigestBuilder digest;
  digest.Add(uuid).Add(int64_t{driver_version}).Add(kGpuCalibrationMethod);
  return absl::StrCat(state_directory, "/calibration-gpu-", digest.Finish().substr(0, 16), ".pb");
}

absl::Status LoadCalibration(const std::string& path, v1::Calibration* calibration) {
  absl::StatusOr<std::string> bytes = ReadFile(path, kFileBytesMax);
  if (!bytes.ok() || !calibration->ParseFromString(*bytes) || calibration->points().empty()) {
    return absl::NotFoundError(absl::StrCat("no calibration in ", path));
  }
  return absl::OkStatus();
}

absl::Status SaveCalibration(const std::string& path, const v1::Calibration& calibration) {
  return WriteFileAtomically(path, calibration.SerializeAsString());
}

}  // namespace assay
