#include "worker/verify/precision.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>

#include "assay/internal/v1/runner.pb.h"
#include "assay/v1/evaluation.pb.h"
#include "assay/v1/problem.pb.h"
#include "kernels/inputs/structure.h"

namespace assay {
namespace {

constexpr int kF32MantissaBits = 23;
constexpr int kF64MantissaBits = 52;
// Fewer elements may end in zeros by chance.
constexpr int64_t kElementsMin = 32;

template <typename T, typename Word>
Word BitsOf(T value) {
  Word bits;
  static_assert(sizeof(bits) == sizeof(value));
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// Trailing mantissa bits that are zero in every element of `got`; -1 when that says nothing, since
// they are zero in the right results too or elements are few.
template <typename T, typename Word, int kMantissaBits>
int ZeroTrailingBits(std::span<const std::byte> got_bytes, std::span<const std::byte> want_bytes) {
  const T* got = reinterpret_cast<const T*>(got_bytes.data());
  const double* want = reinterpret_cast<const double*>(want_bytes.data());
  const size_t count = got_bytes.size() / sizeof(T);
  Word got_bits = 0;
  Word want_bits = 0;
  int64_t counted = 0;
  for (size_t i = 0; i < count; ++i) {
    if (got[i] == 0 || !std::isfinite(got[i])) continue;
    ++counted;
    got_bits |= BitsOf<T, Word>(got[i]);
    want_bits |= BitsOf<T, Word>(static_cast<T>(want[i]));
    if ((got_bits & 1) != 0 && counted >= kElementsMin) return 0;
  }
  if (counted < kElementsMin) return -1;
  const int zeros = std::min(std::countr_zero(got_bits), kMantissaBits);
  const int by_right = std::min(std::countr_zero(want_bits), kMantissaBits);
  return zeros > by_right ? zeros : zeros == 0 ? 0 : -1;
}

// Whether the right results are integers that the output holds, and every sum on the way to them.
template <typename T>
bool IsIntegral(std::span<const std::byte> want_bytes) {
  constexpr double kExact = sizeof(T) == sizeof(double) ? 0x1p53 : 0x1p24;
  const double* want = reinterpret_cast<const double*>(want_bytes.data());
  const size_t count = want_bytes.size() / sizeof(double);
  for (size_t i = 0; i < count; ++i) {
    if (!(std::fabs(want[i]) <= kExact) || want[i] != std::nearbyint(want[i])) return false;
  }
  return true;
}

template <typename T>
void FillExactness(std::span<const std::byte> got_bytes, std::span<const std::byte> want_bytes,
                   internal::v1::PrecisionEvidence* out) {
  const T* got = reinterpret_cast<const T*>(got_bytes.data());
  const double* want = reinterpret_cast<const double*>(want_bytes.data());
  const size_t count = got_bytes.size() / sizeof(T);
  int64_t inexact = 0;
  double error_squares = 0;
  double want_squares = 0;
  for (size_t i = 0; i < count; ++i) {
    const double error = static_cast<double>(got[i]) - want[i];
    if (error != 0) ++inexact;
    error_squares += error * error;
    want_squares += want[i] * want[i];
  }
  out->set_inexact_count(inexact);
  if (want_squares > 0) out->set_relative_l2(std::sqrt(error_squares / want_squares));
}

// The contract under which integers must come out exact; false where it allows less.
bool DemandsExactSums(const v1::Problem& problem) {
  if (problem.contracts_size() != 1) return false;
  const v1::ArithmeticContract& contract = problem.contracts(0);
  return contract.operand_roundings().empty() && !contract.approximate_functions() &&
         (contract.accumulator() == v1::F32 || contract.accumulator() == v1::F64);
}

bool IsScaled(const v1::Problem& problem, const std::string& name) {
  for (const v1::Tensor& tensor : problem.tensors()) {
    if (tensor.name() == name) return tensor.tolerance().kind() == v1::TolerancePolicy::SCALED;
  }
  return false;
}

// Largest relative error of one rounding to the type; 0 for those that sums are kept in.
double RoundingOf(int rounding) {
  switch (rounding) {
    case v1::ArithmeticContract::TF32:
    case v1::ArithmeticContract::HALF:
      return 0x1p-10;  // also where the last bits are cut off
    case v1::ArithmeticContract::BFLOAT:
      return 0x1p-7;
    default:
      return 0;
  }
}

// Mantissa bits that one rounding to the type leaves.
int SignificantBitsOf(int rounding) {
  switch (rounding) {
    case v1::ArithmeticContract::TF32:
    case v1::ArithmeticContract::HALF:
      return 10;
    case v1::ArithmeticContract::BFLOAT:
      return 7;
    default:
      return kF64MantissaBits;
  }
}

double OutputRoundingOf(DataType dtype) {
  return dtype == DataType::kF16 ? 0x1p-11 : dtype == DataType::kBF16 ? 0x1p-8 : 0;
}

}  // namespace

void GatherPrecision(const std::string& input_case, LoadedWork* work,
                     internal::v1::RunnerWorkloadReport* report) {
  const bool is_nominal = input_case == "x1";
  const bool is_integers =
      StructureByName(input_case) == Structure::kExactIntegers && DemandsExactSums(work->problem());
  if (!is_nominal && !is_integers) return;
  for (int output = 0; output < report->verification().outputs_size(); ++output) {
    const size_t index = work->output_index(static_cast<size_t>(output));
    const TensorShape& tensor = work->workload().tensors[index];
    const bool is_f32 = tensor.dtype == DataType::kF32;
    if ((!is_f32 && tensor.dtype != DataType::kF64) || !IsScaled(work->problem(), tensor.name)) {
      continue;
    }
    const std::span<const std::byte> got = work->candidate().Buffer(index);
    const std::span<const std::byte> want = work->expected(static_cast<size_t>(output));
    if (is_integers && !(is_f32 ? IsIntegral<float>(want) : IsIntegral<double>(want))) continue;
    internal::v1::PrecisionEvidence& out = *report->add_precision();
    out.set_tensor(tensor.name);
    out.set_input_case(input_case);
    out.set_element_count(tensor.elements);
    out.set_zero_trailing_bits(-1);
    if (is_integers) {
      is_f32 ? FillExactness<float>(got, want, &out) : FillExactness<double>(got, want, &out);
      continue;
    }
    out.set_relative_l2(report->verification().outputs(output).relative_l2());
    out.set_zero_trailing_bits(
        is_f32 ? ZeroTrailingBits<float, uint32_t, kF32MantissaBits>(got, want)
               : ZeroTrailingBits<double, uint64_t, kF64MantissaBits>(got, want));
  }
}

int HonestZeroBitsMax(const v1::Problem& problem, std::string_view tensor) {
  int bits = 0;
  for (const v1::Tensor& output : problem.tensors()) {
    if (output.name() != tensor) continue;
    const int all = output.dtype() == v1::F64 ? kF64MantissaBits : kF32MantissaBits;
    for (const v1::ArithmeticContract& contract : problem.contracts()) {
      for (const int rounding : contract.operand_roundings()) {
        bits = std::max(bits, all - SignificantBitsOf(rounding));
      }
    }
  }
  return bits;
}

double HonestErrorMax(const v1::Problem& problem, const ResolvedWorkload& workload) {
  if (problem.contracts_size() != 1) return std::numeric_limits<double>::infinity();
  const v1::ArithmeticContract& contract = problem.contracts(0);
  int64_t terms = ReductionLengthMax(problem, workload);
  double rounded = 0;
  for (const TensorShape& tensor : workload.tensors) {
    if (tensor.is_output) {
      rounded = std::max(rounded, OutputRoundingOf(tensor.dtype));
    } else {
      terms = std::max(terms, tensor.dims.back());
    }
  }
  for (const int rounding : contract.operand_roundings()) rounded += RoundingOf(rounding);
  const double unit = contract.accumulator() == v1::F64   ? 0x1p-53
                      : contract.accumulator() == v1::F16 ? 0x1p-11
                                                          : 0x1p-24;
  const double functions = contract.approximate_functions() ? 8 : 1;
  return functions * unit * (8 + 8 * std::sqrt(static_cast<double>(terms))) + rounded;
}

}  // namespace assay
