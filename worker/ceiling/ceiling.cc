#include "worker/ceiling/ceiling.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "assay/v1/evaluation.pb.h"
#include "assay/v1/fleet.pb.h"
#include "assay/v1/problem.pb.h"

namespace assay {
namespace {

constexpr double kNsPerSecond = 1e9;

struct Mix {
  const char* kernel;
  double written_share;
};
constexpr Mix kMixes[] = {{"read", 0.0}, {"triad", 1.0 / 3}, {"copy", 0.5}, {"write", 1.0}};
constexpr double kSameShare = 0.03;

// What computes a unit's operations, and how many of its own each of them takes. A tensor core
// takes three products for one of f32: of TF32 or f16 parts that hold high and low bits.
struct UnitSource {
  int unit;
  const char* kernel;
  int products;
};
constexpr UnitSource kUnitSources[] = {
    {v1::WorkModel::FLOP_F32, "fma_f32", 1},  {v1::WorkModel::FLOP_F32, "mma_tf32", 3},
    {v1::WorkModel::FLOP_F32, "mma_f16", 3},  {v1::WorkModel::FLOP_F64, "fma_f64", 1},
    {v1::WorkModel::FLOP_F64, "mma_f64", 1},  {v1::WorkModel::FLOP_F16, "fma_f16", 1},
    {v1::WorkModel::FLOP_F16, "mma_f16", 1},  {v1::WorkModel::FLOP_BF16, "mma_bf16", 1},
    {v1::WorkModel::OP_INT8, "madd_int8", 1}, {v1::WorkModel::OP_INT8, "mma_int8", 1},
};

std::string CoresText(int cores) {
  if (cores == kWholeDevice) return "whole device";
  return absl::StrCat(cores, cores == 1 ? " core" : " cores");
}

// What may compute `source`'s operations faster than anything that was measured; empty: nothing.
std::string UnmeasuredUnit(const v1::Calibration& calibration, const UnitSource& source) {
  for (const std::string& left_out : calibration.left_out()) {
    const std::string what = left_out.substr(0, left_out.find(':'));
    // "mma_bf16: sm_75 has none" is no hole.
    const bool is_there = left_out.find("has none") == std::string::npos;
    if (what == source.kernel && is_there) return what;
    // These units have no double precision.
    if (absl::string_view(source.kernel).substr(0, 4) == "mma_" &&
        source.unit != v1::WorkModel::FLOP_F64 && (what == "wgmma" || what == "tcgen05.mma")) {
      return what;
    }
  }
  return "";
}

// The rate of one stream kernel for a footprint.
Rate StreamRate(const v1::Calibration& calibration, const std::string& kernel,
                double footprint_bytes, int cores) {
  // The largest measured footprint that is not above the workload's; the smallest when all are.
  int64_t from = -1;
  int64_t smallest = -1;
  for (const v1::CeilingPoint& point : calibration.points()) {
    if (point.kernel() != kernel || point.cores() != cores) continue;
    const int64_t footprint = point.footprint_bytes();
    if (smallest < 0 || footprint < smallest) smallest = footprint;
    if (static_cast<double>(footprint) <= footprint_bytes) from = std::max(from, footprint);
  }
  if (from < 0) from = smallest;
  Rate best;
  for (const v1::CeilingPoint& point : calibration.points()) {
    if (point.kernel() != kernel || point.cores() != cores || point.footprint_bytes() < from) {
      continue;
    }
    if (point.rate_per_second() <= best.per_second) continue;
    best.per_second = point.rate_per_second();
    best.basis = absl::StrFormat("%s %s %s %.1f GB/s", kernel, point.level(), CoresText(cores),
                                 point.rate_per_second() / 1e9);
  }
  return best;
}

}  // namespace

Rate MemoryRate(const v1::Calibration& calibration, double footprint_bytes, double written_share,
                int cores) {
  Rate best;
  for (size_t i = 0; i < std::size(kMixes); ++i) {
    const double low = i == 0 ? 0 : kMixes[i - 1].written_share;
    const double high = i + 1 == std::size(kMixes) ? 1 : kMixes[i + 1].written_share;
    bool applies = written_share > low && written_share < high;
    // A share that is one of the mixes leaves its neighbours out.
    for (const Mix& mix : kMixes) {
      if (std::abs(written_share - mix.written_share) <= kSameShare) {
        applies = mix.kernel == kMixes[i].kernel;
      }
    }
    // One stream of reads can be slower than three streams that write as well (prefetchers follow
    // streams): a kernel that reads along several has at least what those got.
    if (written_share <= kSameShare) applies = kMixes[i].written_share < 1;
    if (!applies) continue;
    Rate rate = StreamRate(calibration, kMixes[i].kernel, footprint_bytes, cores);
    if (rate.per_second > best.per_second) best = std::move(rate);
  }
  return best;
}

Rate ComputeRate(const v1::Calibration& calibration, int unit, int cores) {
  Rate best;
  for (const UnitSource& source : kUnitSources) {
    if (source.unit != unit) continue;
    // A limit that a faster unit beats accuses the honest.
    if (const std::string other = UnmeasuredUnit(calibration, source); !other.empty()) {
      return {0, absl::StrCat("the rate of ", other,
                              " was not measured, so operations set no limit on this device")};
    }
    for (const v1::CeilingPoint& point : calibration.points()) {
      if (point.kernel() != source.kernel || point.cores() != cores) continue;
      const double rate = point.rate_per_second() / source.products;
      if (rate <= best.per_second) continue;
      best.per_second = rate;
      best.basis = absl::StrFormat("%s%s %s %.1f Gop/s", source.kernel,
                                   source.products == 1 ? "" : " by three products",
                                   CoresText(cores), rate / 1e9);
    }
  }
  if (best.per_second == 0 && unit != v1::WorkModel::NONE &&
      unit != v1::WorkModel::UNIT_UNSPECIFIED) {
    best.basis = absl::StrCat("this device has no measured rate of ",
                              v1::WorkModel::Unit_Name(static_cast<v1::WorkModel::Unit>(unit)),
                              ", so its operations set no limit");
  }
  return best;
}

void ComputeCeiling(const WorkCost& cost, const v1::Calibration& calibration, double launch_ns,
                    int cores, v1::Ceiling* ceiling) {
  const double bytes = cost.bytes_read + cost.bytes_written;
  const double share = bytes > 0 ? cost.bytes_written / bytes : 0;
  const Rate memory = MemoryRate(calibration, cost.footprint_bytes, share, cores);
  const Rate compute = ComputeRate(calibration, cost.unit, cores);
  if (memory.per_second > 0) {
    ceiling->set_memory_time_ns(bytes / memory.per_second * kNsPerSecond);
  }
  if (compute.per_second > 0) {
    ceiling->set_compute_time_ns(cost.operations / compute.per_second * kNsPerSecond);
  }
  ceiling->set_launch_time_ns(launch_ns);
  ceiling->set_arithmetic_intensity(cost.intensity());
  ceiling->set_calibration(calibration.name());
  ceiling->set_time_ns(
      std::max({ceiling->memory_time_ns(), ceiling->compute_time_ns(), ceiling->launch_time_ns()}));
  if (ceiling->time_ns() == ceiling->launch_time_ns()) {
    ceiling->set_bound(v1::Ceiling::LAUNCH);
    ceiling->set_basis(absl::StrFormat(
        "%s %.0f ns",
        cores == kWholeDevice ? "launch of an empty kernel" : "handshake of a timed call",
        launch_ns));
  } else if (ceiling->time_ns() == ceiling->compute_time_ns()) {
    ceiling->set_bound(v1::Ceiling::COMPUTE);
    ceiling->set_basis(compute.basis);
  } else {
    ceiling->set_bound(v1::Ceiling::MEMORY);
    ceiling->set_basis(memory.basis);
  }
  if (compute.per_second == 0 && !compute.basis.empty()) {
    ceiling->set_basis(absl::StrCat(ceiling->basis(), "; ", compute.basis));
  }
}

}  // namespace assay
