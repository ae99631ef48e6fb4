#include "tests/gpu/cross_check.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "assay/v1/candidate.pb.h"
#include "assay/v1/evaluation.pb.h"
#include "assay/v1/fleet.pb.h"
#include "assay/v1/problem.pb.h"
#include "base/status.h"
#include "kernels/half.h"
#include "kernels/inputs/inputs.h"
#include "kernels/tolerance/tolerance.h"
#include "tests/gpu/exactness.h"
#include "worker/ceiling/ceiling.h"
#include "worker/measure/statistics.h"

namespace assay {
namespace {

constexpr int kTimedRuns = 30;
// At most this of a short run is loading and allocating.
constexpr absl::Duration kStartUp = absl::Milliseconds(100);
// Operations and bytes that an emulated device does at the least, with few exceptions.
constexpr double kEmulatedCostPerSecond = 5e6;

// The elements of a floating-point tensor, as a reference would give them.
std::vector<double> Widened(DataType dtype, std::span<const std::byte> bytes) {
  std::vector<double> values(bytes.size() / DataTypeSize(dtype));
  const auto convert = [&](auto raw, auto widen) {
    for (size_t i = 0; i < values.size(); ++i) {
      std::memcpy(&raw, bytes.data() + i * sizeof raw, sizeof raw);
      values[i] = widen(raw);
    }
  };
  switch (dtype) {
    case DataType::kF32:
      convert(float{}, [](float x) { return static_cast<double>(x); });
      break;
    case DataType::kF64:
      convert(double{}, [](double x) { return x; });
      break;
    case DataType::kF16:
      convert(uint16_t{}, [](uint16_t x) { return static_cast<double>(F16ToFloat(x)); });
      break;
    case DataType::kBF16:
      convert(uint16_t{}, [](uint16_t x) { return static_cast<double>(BF16ToFloat(x)); });
      break;
    default:
      break;
  }
  return values;
}

const v1::TolerancePolicy& PolicyOf(const v1::Problem& problem, const std::string& tensor) {
  for (const v1::Tensor& declared : problem.tensors()) {
    if (declared.name() == tensor) return declared.tolerance();
  }
  return v1::TolerancePolicy::default_instance();
}

// Where two outputs of equal size differ first, in bytes.
size_t FirstDifference(std::span<const std::byte> a, std::span<const std::byte> b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin());
}

OutputComparison Compare(const v1::TolerancePolicy& policy, const TensorShape& tensor,
                         std::span<const std::byte> device, std::span<const std::byte> emulated) {
  if (policy.kind() == v1::TolerancePolicy::BITWISE) {
    return CompareOutput(policy, tensor, device, emulated);
  }
  const std::vector<double> want = Widened(tensor.dtype, emulated);
  return CompareOutput(policy, tensor, device, std::as_bytes(std::span(want)));
}

// Milliseconds of the emulated device grow with both.
double CostOf(const WorkCost& cost) { return cost.operations + cost.footprint_bytes; }

// Of the next workload. The one before it scales, unless most of its time was start-up.
absl::Duration ExpectedTime(absl::Duration last_time, double last_cost,
                            const CostedWorkload& next) {
  const absl::Duration scaled = last_time * (CostOf(next.cost) / std::max(1.0, last_cost));
  if (last_time > kStartUp) return scaled;
  return std::min(scaled, absl::Seconds(CostOf(next.cost) / kEmulatedCostPerSecond));
}

absl::StatusOr<CrossRow> CheckOne(const GpuCandidate& candidate, const ResolvedWorkload& workload,
                                  const CrossCheckOptions& options) {
  ASSAY_ASSIGN_OR_RETURN(const TensorBytes inputs,
                         MakeInputs(*candidate.problem, workload, options.input_seed));
  KernelJob job;
  job.spec = &candidate.candidate->spec();
  job.configuration = &candidate.configuration;
  job.ptx = &candidate.ptx;
  job.workload = &workload;
  job.inputs = &inputs;
  const absl::StatusOr<KernelOutcome> device = RunKernels(options.device, job, 0);
  if (!device.ok()) return Annotate(device.status(), "on the device");
  const absl::StatusOr<KernelOutcome> emulated = RunKernels(options.emulated, job, 0);
  if (!emulated.ok()) return Annotate(emulated.status(), "on the emulated device");
  return CompareOutcomes(candidate, workload, device->outputs, emulated->outputs);
}

CrossRow RowOf(const GpuCandidate& candidate, const std::string& workload) {
  CrossRow row;
  row.problem = candidate.problem_id;
  row.candidate = candidate.label;
  row.workload = workload;
  return row;
}

}  // namespace

CrossRow CompareOutcomes(const GpuCandidate& candidate, const ResolvedWorkload& workload,
                         const TensorBytes& device, const TensorBytes& emulated) {
  CrossRow row = RowOf(candidate, workload.name);
  row.why_bits_may_differ = WhyBitsMayDiffer(candidate.ptx);
  row.result = CrossRow::Result::kSameBits;
  for (size_t i = 0; i < workload.tensors.size(); ++i) {
    const TensorShape& tensor = workload.tensors[i];
    if (!tensor.is_output || device[i] == emulated[i]) continue;
    const OutputComparison comparison =
        Compare(PolicyOf(*candidate.problem, tensor.name), tensor, device[i], emulated[i]);
    row.relative_l2 = std::max(row.relative_l2, comparison.relative_l2);
    row.element_error = std::max(row.element_error, comparison.element_error_max);
    if (row.result == CrossRow::Result::kDiffers) continue;
    row.result = CrossRow::Result::kWithinTolerance;
    const bool must_be_same = row.why_bits_may_differ.empty();
    if (comparison.passed && !must_be_same) continue;
    row.result = CrossRow::Result::kDiffers;
    const size_t element = comparison.first_wrong >= 0 ? static_cast<size_t>(comparison.first_wrong)
                                                       : FirstDifference(device[i], emulated[i]) /
                                                             DataTypeSize(tensor.dtype);
    row.message = absl::StrCat(
        tensor.name, " differs", must_be_same ? " where every bit must be the same" : "",
        ", first at element ", element, " of ", tensor.elements,
        comparison.first_wrong < 0
            ? ""
            : absl::StrCat(": ", comparison.first_wrong_got, " on the device, ",
                           comparison.first_wrong_want, " on the emulated one"));
  }
  return row;
}

std::vector<CrossRow> CrossCheck(const GpuCandidate& candidate, const CrossCheckOptions& options,
                                 std::vector<std::string>* left_out) {
  std::vector<CrossRow> rows;
  const absl::StatusOr<std::vector<CostedWorkload>> workloads = WorkloadsByCost(*candidate.problem);
  if (!workloads.ok()) {
    rows.push_back(RowOf(candidate, ""));
    rows.back().message = std::string(workloads.status().message());
    return rows;
  }
  const absl::Duration start = options.clock->Monotonic();
  absl::Duration last_time;
  double last_cost = 0;
  for (const CostedWorkload& next : *workloads) {
    const absl::Duration used = options.clock->Monotonic() - start;
    if (!rows.empty() && used + ExpectedTime(last_time, last_cost, next) > options.time_max) {
      left_out->push_back(
          absl::StrCat(candidate.problem_id, "/", candidate.label, " ", next.workload.name));
      continue;
    }
    const absl::StatusOr<CrossRow> row = CheckOne(candidate, next.workload, options);
    if (row.ok()) {
      rows.push_back(*row);
    } else {
      rows.push_back(RowOf(candidate, next.workload.name));
      rows.back().message = std::string(row.status().message());
    }
    last_time = options.clock->Monotonic() - start - used;
    last_cost = CostOf(next.cost);
  }
  return rows;
}

absl::StatusOr<TensorBytes> MakeInputs(const v1::Problem& problem, const ResolvedWorkload& workload,
                                       uint64_t seed) {
  TensorBytes inputs(workload.tensors.size());
  InputCaseSpec plain;
  plain.name = "x1";
  for (size_t i = 0; i < workload.tensors.size(); ++i) {
    if (workload.tensors[i].is_output) continue;
    inputs[i].resize(static_cast<size_t>(workload.tensors[i].bytes));
    ASSAY_RETURN_IF_ERROR(GenerateInput(problem, workload, i, plain, seed, inputs[i]));
  }
  return inputs;
}

absl::StatusOr<std::vector<CostedWorkload>> WorkloadsByCost(const v1::Problem& problem) {
  std::vector<CostedWorkload> workloads;
  for (const v1::Workload& declared : problem.workloads()) {
    CostedWorkload costed;
    ASSAY_ASSIGN_OR_RETURN(costed.workload, ResolveWorkload(problem, declared));
    ASSAY_ASSIGN_OR_RETURN(costed.cost, ComputeWorkCost(problem, costed.workload));
    workloads.push_back(std::move(costed));
  }
  std::stable_sort(workloads.begin(), workloads.end(),
                   [](const CostedWorkload& a, const CostedWorkload& b) {
                     return CostOf(a.cost) < CostOf(b.cost);
                   });
  return workloads;
}

absl::StatusOr<TimeRow> TimeCandidate(const GpuCandidate& candidate, const GpuTarget& device,
                                      const v1::Calibration& calibration, int64_t bytes_max,
                                      uint64_t input_seed, InputMemo* memo) {
  ASSAY_ASSIGN_OR_RETURN(const std::vector<CostedWorkload> workloads,
                         WorkloadsByCost(*candidate.problem));
  const auto chosen =
      std::find_if(workloads.rbegin(), workloads.rend(), [&](const CostedWorkload& costed) {
        return !costed.workload.verify_only &&
               costed.cost.footprint_bytes <= static_cast<double>(bytes_max);
      });
  if (chosen == workloads.rend()) {
    return absl::NotFoundError(absl::StrCat("no workload of at most ", bytes_max, " bytes"));
  }
  const std::string key =
      absl::StrCat(candidate.problem_id, " ", chosen->workload.name, " ", input_seed);
  if (memo->key != key) {
    memo->key.clear();
    ASSAY_ASSIGN_OR_RETURN(memo->inputs,
                           MakeInputs(*candidate.problem, chosen->workload, input_seed));
    memo->key = key;
  }
  KernelJob job;
  job.spec = &candidate.candidate->spec();
  job.configuration = &candidate.configuration;
  job.ptx = &candidate.ptx;
  job.workload = &chosen->workload;
  job.inputs = &memo->inputs;
  ASSAY_ASSIGN_OR_RETURN(KernelOutcome outcome, RunKernels(device, job, kTimedRuns));
  if (outcome.times_ns.empty()) {
    return absl::FailedPreconditionError("an emulated device has no times");
  }
  std::sort(outcome.times_ns.begin(), outcome.times_ns.end());
  TimeRow row;
  row.problem = candidate.problem_id;
  row.candidate = candidate.label;
  row.workload = chosen->workload.name;
  row.median_ns = SortedQuantile(outcome.times_ns, 0.5);
  row.spread_ratio =
      (SortedQuantile(outcome.times_ns, 0.75) - SortedQuantile(outcome.times_ns, 0.25)) /
      row.median_ns;
  if (calibration.points().empty()) return row;
  v1::Ceiling ceiling;
  ComputeCeiling(chosen->cost, calibration, calibration.launch_ns(), kWholeDevice, &ceiling);
  row.ceiling_ns = ceiling.time_ns();
  row.ceiling_basis = ceiling.basis();
  return row;
}

}  // namespace assay
