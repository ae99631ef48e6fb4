// Two passes over blocks: a fast one without branches for ordinary numbers, and an exact one,
// element by element, for blocks that hold something wrong, infinite or NaN.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "assay/v1/problem.pb.h"
#include "kernels/half.h"
#include "kernels/tolerance/tolerance.h"
#include "kernels/wide_loops.h"

namespace assay {
namespace {

constexpr size_t kBlock = 1024;
// Independent sums. Loops over whole groups of so many have no tails.
constexpr size_t kLanes = 16;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
// A sum of squares below this may have lost terms to underflow.
constexpr double kSquaresMin = 1e-280;

// Magnitude from which a finite number rounds to infinity in the type.
double OverflowOf(DataType dtype) {
  switch (dtype) {
    case DataType::kF32:
      return 0x1.ffffffp127;
    case DataType::kBF16:
      return 0x1.ffp127;
    case DataType::kF16:
      return 65520.0;
    default:
      return kInfinity;
  }
}

double SmallestNormalOf(DataType dtype) {
  switch (dtype) {
    case DataType::kF64:
      return std::numeric_limits<double>::min();
    case DataType::kF32:
    case DataType::kBF16:
      return std::numeric_limits<float>::min();
    case DataType::kF16:
      return 0x1p-14;
    default:
      return 1.0;  // integers
  }
}

template <typename T, typename Convert>
void LoadAs(const std::byte* from, size_t count, double* out, Convert convert) {
  for (size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, from + i * sizeof(T), sizeof(T));
    out[i] = convert(value);
  }
}

// Elements [first, first + count) as doubles, which hold every type exactly.
void Load(DataType dtype, const std::byte* bytes, size_t first, size_t count, double* out) {
  const auto plain = [](auto value) { return static_cast<double>(value); };
  const std::byte* from = bytes + first * DataTypeSize(dtype);
  switch (dtype) {
    case DataType::kF64:
      std::memcpy(out, from, count * sizeof(double));
      break;
    case DataType::kF32:
      LoadAs<float>(from, count, out, plain);
      break;
    case DataType::kF16:
      LoadAs<uint16_t>(from, count, out, [](uint16_t v) { return double{F16ToFloat(v)}; });
      break;
    case DataType::kBF16:
      LoadAs<uint16_t>(from, count, out, [](uint16_t v) { return double{BF16ToFloat(v)}; });
      break;
    case DataType::kI32:
      LoadAs<int32_t>(from, count, out, plain);
      break;
    case DataType::kI8:
      LoadAs<int8_t>(from, count, out, plain);
      break;
    case DataType::kU8:
      LoadAs<uint8_t>(from, count, out, plain);
      break;
  }
}

// The scale of one row, or of the output.
struct Scale {
  double scale = 0;
  long double squares = 0;  // of the finite references that the type can hold
  double largest = 0;       // where all are ordinary
  // All references are finite, inside the type's range, and large enough for double sums.
  bool ordinary = true;
};

// Exact in range: long double squares neither overflow nor underflow where it is the extended type.
Scale CarefulScale(const double* want, size_t count, double overflow) {
  Scale out;
  out.ordinary = false;
  size_t counted = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!(std::fabs(want[i]) < overflow)) continue;
    out.squares += static_cast<long double>(want[i]) * want[i];
    ++counted;
  }
  if (counted > 0) out.scale = static_cast<double>(std::sqrt(out.squares / counted));
  return out;
}

// Four at a time, in registers; where the machine has no such, the compiler splits them.
using Four = double __attribute__((vector_size(32)));
using FourWords = int64_t __attribute__((vector_size(32)));
using FourFloats = float __attribute__((vector_size(16)));

template <typename T>
ASSAY_WIDE_BODY void LoadFour(const std::byte* from, Four* out) {
  if constexpr (std::is_same_v<T, float>) {
    FourFloats floats;
    std::memcpy(&floats, from, sizeof(floats));
    *out = __builtin_convertvector(floats, Four);
  } else {
    static_assert(std::is_same_v<T, double>);
    std::memcpy(out, from, sizeof(*out));
  }
}

struct SquareSums {
  double squares = 0;
  double largest = 0;
};

// `count` is a multiple of kLanes. Adds to `sums`.
ASSAY_WIDE_BODY void SumSquares(const double* want, size_t count, SquareSums* sums) {
  constexpr size_t kSets = kLanes / 4;
  const FourWords magnitude = FourWords{} + std::numeric_limits<int64_t>::max();
  Four squares[kSets] = {};
  Four largest[kSets] = {};
  for (size_t i = 0; i < count; i += kLanes) {
    for (size_t set = 0; set < kSets; ++set) {
      Four value;
      std::memcpy(&value, want + i + 4 * set, sizeof(value));
      const Four size = (Four)((FourWords)value & magnitude);
      squares[set] += value * value;
      largest[set] = size > largest[set] ? size : largest[set];
    }
  }
  for (size_t set = 0; set < kSets; ++set) {
    for (size_t lane = 0; lane < 4; ++lane) {
      sums->squares += squares[set][lane];
      sums->largest = std::max(sums->largest, largest[set][lane]);
    }
  }
}

Scale ScaleOf(const double* want, size_t count, DataType dtype) {
  SquareSums sums;
  const size_t whole = count / kLanes * kLanes;
  DispatchWide<SumSquares>(want, whole, &sums);
  for (size_t i = whole; i < count; ++i) {
    sums.squares += want[i] * want[i];
    sums.largest = std::max(sums.largest, std::fabs(want[i]));
  }
  Scale out;
  const double overflow = OverflowOf(dtype);
  // The sum is NaN or infinity when something is.
  if (sums.squares >= kSquaresMin && sums.squares <= std::numeric_limits<double>::max() &&
      sums.largest < overflow) {
    out.squares = sums.squares;
    out.largest = sums.largest;
    out.scale = std::sqrt(sums.squares / static_cast<double>(count));
  } else {
    out = CarefulScale(want, count, overflow);
  }
  out.scale = std::max(out.scale, SmallestNormalOf(dtype));
  return out;
}

struct BlockSums {
  double error_squares = 0;
  double ratio_max = 0;
  bool wrong = false;
};

// `count` is a multiple of kLanes. The largest of error / unit is found by products, since a
// division takes longer than all else.
template <typename T>
ASSAY_WIDE_BODY void SumErrors(const std::byte* got, const double* want, size_t count, double scale,
                               double element_max, BlockSums* sums) {
  constexpr size_t kSets = 2;
  const FourWords magnitude = FourWords{} + std::numeric_limits<int64_t>::max();
  Four squares[kSets] = {};
  Four error_of_max[kSets] = {};
  Four unit_of_max[kSets] = {Four{} + 1.0, Four{} + 1.0};
  FourWords wrong[kSets] = {};
  for (size_t i = 0; i < count; i += 4 * kSets) {
    for (size_t set = 0; set < kSets; ++set) {
      Four right, value;
      std::memcpy(&right, want + i + 4 * set, sizeof(right));
      LoadFour<T>(got + (i + 4 * set) * sizeof(T), &value);
      const Four difference = value - right;
      const Four error = (Four)((FourWords)difference & magnitude);
      const Four unit = (Four)((FourWords)right & magnitude) + scale;
      squares[set] += error * error;
      const FourWords larger = error * unit_of_max[set] > error_of_max[set] * unit;
      error_of_max[set] = larger ? error : error_of_max[set];
      unit_of_max[set] = larger ? unit : unit_of_max[set];
      wrong[set] |= error > element_max * unit;
    }
  }
  for (size_t set = 0; set < kSets; ++set) {
    for (size_t lane = 0; lane < 4; ++lane) {
      sums->error_squares += squares[set][lane];
      sums->ratio_max = std::max(sums->ratio_max, error_of_max[set][lane] / unit_of_max[set][lane]);
      sums->wrong |= wrong[set][lane] != 0;
    }
  }
}

struct BlockResult {
  double error_squares = 0;
  double ratio_max = 0;
  bool clean = true;  // nothing wrong, infinite or NaN
};

template <typename T>
BlockResult FastBlockOf(const std::byte* got, const double* want, size_t count, double scale,
                        double element_max) {
  BlockSums sums;
  const size_t whole = count / kLanes * kLanes;
  DispatchWide<SumErrors<T>>(got, want, whole, scale, element_max, &sums);
  if (whole < count) {
    // Zeros that compare right fill up the last group.
    std::array<T, kLanes> got_rest{};
    std::array<double, kLanes> want_rest{};
    std::memcpy(got_rest.data(), got + whole * sizeof(T), (count - whole) * sizeof(T));
    std::copy(want + whole, want + count, want_rest.begin());
    DispatchWide<SumErrors<T>>(std::as_bytes(std::span(got_rest)).data(),
                               static_cast<const double*>(want_rest.data()), kLanes, scale,
                               element_max, &sums);
  }
  BlockResult out;
  out.error_squares = sums.error_squares;
  out.ratio_max = sums.ratio_max;
  out.clean = !sums.wrong && out.error_squares <= std::numeric_limits<double>::max();
  return out;
}

// Elements [first, first + count) of `got`, at most kBlock, against those at `want`.
BlockResult FastBlock(DataType dtype, const std::byte* got, size_t first, const double* want,
                      size_t count, double scale, double element_max) {
  const std::byte* from = got + first * DataTypeSize(dtype);
  if (dtype == DataType::kF32) return FastBlockOf<float>(from, want, count, scale, element_max);
  if (dtype == DataType::kF64) return FastBlockOf<double>(from, want, count, scale, element_max);
  std::array<double, kBlock> values;
  Load(dtype, got, first, count, values.data());
  return FastBlockOf<double>(std::as_bytes(std::span(values)).data(), want, count, scale,
                             element_max);
}

// Compares one output under SCALED.
class ScaledComparison {
 public:
  ScaledComparison(const v1::TolerancePolicy& policy, const TensorShape& tensor,
                   const std::byte* got, const double* want)
      : tensor_(tensor),
        got_(got),
        want_(want),
        relative_l2_max_(policy.relative_l2_max()),
        element_max_(policy.element_max()),
        overflow_(OverflowOf(tensor.dtype)) {}

  OutputComparison Run(bool scale_per_row) {
    const auto count = static_cast<size_t>(tensor_.elements);
    const size_t row = scale_per_row ? static_cast<size_t>(tensor_.dims.back()) : count;
    for (size_t start = 0; start < count; start += row) CompareRow(start, row);
    if (special_mismatch_) {
      out_.relative_l2 = kInfinity;
    } else if (want_squares_ > 0) {
      out_.relative_l2 = static_cast<double>(std::sqrt(error_squares_ / want_squares_));
    } else {
      out_.relative_l2 = error_squares_ > 0 ? kInfinity : 0.0;
    }
    out_.passed = out_.wrong_count == 0 && out_.relative_l2 <= relative_l2_max_;
    return out_;
  }

 private:
  void CompareRow(size_t start, size_t length) {
    const Scale scale = ScaleOf(want_ + start, length, tensor_.dtype);
    want_squares_ += scale.squares;
    for (size_t at = start; at < start + length;) {
      const size_t take = std::min(kBlock, start + length - at);
      BlockResult result;
      result.clean = false;
      if (scale.ordinary) {
        result = FastBlock(tensor_.dtype, got_, at, want_ + at, take, scale.scale, element_max_);
      }
      if (result.clean) {
        error_squares_ += result.error_squares;
        out_.element_error_max = std::max(out_.element_error_max, result.ratio_max);
      } else {
        CompareCarefully(at, take, scale.scale);
      }
      at += take;
    }
  }

  void CompareCarefully(size_t first, size_t count, double scale) {
    std::array<double, kBlock> got;
    Load(tensor_.dtype, got_, first, count, got.data());
    for (size_t i = 0; i < count; ++i) {
      const double want = Rounded(want_[first + i]);
      const double value = got[i];
      double ratio = 0;
      bool wrong = false;
      if (std::isfinite(want) && std::isfinite(value)) {
        const double unit = std::fabs(want) + scale;
        const double error = std::fabs(value - want);
        error_squares_ += static_cast<long double>(error) * error;
        ratio = error / unit;
        wrong = error > element_max_ * unit;
      } else if (!(value == want || (std::isnan(value) && std::isnan(want)))) {
        special_mismatch_ = true;
        ratio = kInfinity;
        wrong = true;
      }
      out_.element_error_max = std::max(out_.element_error_max, ratio);
      if (wrong) Record(static_cast<int64_t>(first + i), value, want, ratio);
    }
  }

  // The infinity that a reference beyond the type's range rounds to.
  double Rounded(double want) const {
    return std::fabs(want) >= overflow_ ? std::copysign(kInfinity, want) : want;
  }

  void Record(int64_t index, double got, double want, double error) {
    if (out_.wrong_count++ > 0) return;
    out_.first_wrong = index;
    out_.first_wrong_got = got;
    out_.first_wrong_want = want;
    out_.first_wrong_error = error;
  }

  const TensorShape& tensor_;
  const std::byte* const got_;
  const double* const want_;
  const double relative_l2_max_;
  const double element_max_;
  const double overflow_;
  long double error_squares_ = 0;
  long double want_squares_ = 0;
  bool special_mismatch_ = false;
  OutputComparison out_;
};

// |got - want|, infinite where that is not a number.
double PlainError(double got, double want) {
  const double error = std::fabs(got - want);
  return std::isnan(error) ? kInfinity : error;
}

OutputComparison CompareBits(const TensorShape& tensor, std::span<const std::byte> got,
                             std::span<const std::byte> want) {
  OutputComparison out;
  if (std::memcmp(got.data(), want.data(), got.size()) == 0) return out;
  out.passed = false;
  const size_t size = DataTypeSize(tensor.dtype);
  long double error_squares = 0;
  long double want_squares = 0;
  for (size_t i = 0; i * size < got.size(); ++i) {
    double want_value = 0;
    double got_value = 0;
    Load(tensor.dtype, want.data(), i, 1, &want_value);
    if (std::isfinite(want_value))
      want_squares += static_cast<long double>(want_value) * want_value;
    if (std::memcmp(got.data() + i * size, want.data() + i * size, size) == 0) continue;
    Load(tensor.dtype, got.data(), i, 1, &got_value);
    const double error = PlainError(got_value, want_value);
    error_squares += static_cast<long double>(error) * error;
    out.element_error_max = std::max(out.element_error_max, error);
    if (out.wrong_count++ > 0) continue;
    out.first_wrong = static_cast<int64_t>(i);
    out.first_wrong_got = got_value;
    out.first_wrong_want = want_value;
    out.first_wrong_error = error;
  }
  const long double ratio = want_squares > 0 ? error_squares / want_squares : kInfinity;
  out.relative_l2 = error_squares > 0 ? static_cast<double>(std::sqrt(ratio)) : 0.0;
  return out;
}

}  // namespace

OutputScale ScaleOfOutput(const TensorShape& tensor, std::span<const std::byte> want) {
  const Scale whole = ScaleOf(reinterpret_cast<const double*>(want.data()),
                              static_cast<size_t>(tensor.elements), tensor.dtype);
  return {whole.scale, static_cast<double>(whole.squares), whole.largest, whole.ordinary};
}

OutputScale OutputScale::Times(double factor, DataType dtype) const {
  const double size = std::fabs(factor);
  OutputScale out = {scale * size, squares * size * size, largest * size, false};
  out.ordinary = ordinary && out.squares >= kSquaresMin &&
                 out.squares <= std::numeric_limits<double>::max() &&
                 out.largest < OverflowOf(dtype) && out.scale >= SmallestNormalOf(dtype);
  return out;
}

StreamedComparison::StreamedComparison(const v1::TolerancePolicy& policy, const TensorShape& tensor,
                                       std::span<const std::byte> got, const OutputScale& whole,
                                       int64_t first)
    : policy_(policy),
      tensor_(tensor),
      got_(got),
      whole_(whole),
      first_(static_cast<size_t>(first)),
      at_(first_) {}

void StreamedComparison::Add(const StreamedComparison& next) {
  clean_ = clean_ && next.clean_ && next.first_ == at_;
  at_ = next.at_;
  out_.element_error_max = std::max(out_.element_error_max, next.out_.element_error_max);
  error_squares_ += next.error_squares_;
  want_squares_ += next.want_squares_;
}

void StreamedComparison::Take(std::span<const std::byte> want) {
  if (!clean_) return;
  if (policy_.kind() != v1::TolerancePolicy::BITWISE) {
    return TakeScaled({reinterpret_cast<const double*>(want.data()), want.size() / sizeof(double)});
  }
  const size_t first = at_ * DataTypeSize(tensor_.dtype);
  clean_ = std::memcmp(got_.data() + first, want.data(), want.size()) == 0;
  at_ += want.size() / DataTypeSize(tensor_.dtype);
}

void StreamedComparison::TakeScaled(std::span<const double> want) {
  const bool per_row = policy_.scale_per_row();
  const size_t row = per_row ? static_cast<size_t>(tensor_.dims.back()) : want.size();
  for (size_t start = 0; start < want.size() && clean_; start += row) {
    double scale = whole_.scale;
    if (per_row) {
      const Scale own = ScaleOf(want.data() + start, row, tensor_.dtype);
      clean_ = own.ordinary;
      scale = own.scale;
      want_squares_ += static_cast<double>(own.squares);
    } else {
      clean_ = whole_.ordinary;
    }
    for (size_t at = start; at < start + row && clean_; at += kBlock) {
      const size_t take = std::min(kBlock, start + row - at);
      const BlockResult result = FastBlock(tensor_.dtype, got_.data(), at_ + at, want.data() + at,
                                           take, scale, policy_.element_max());
      clean_ = result.clean;
      error_squares_ += result.error_squares;
      out_.element_error_max = std::max(out_.element_error_max, result.ratio_max);
    }
  }
  at_ += want.size();
}

std::optional<OutputComparison> StreamedComparison::Finish() const {
  const bool whole = first_ == 0 && at_ == static_cast<size_t>(tensor_.elements);
  if (!clean_ || !whole) return std::nullopt;
  OutputComparison out = out_;
  if (policy_.kind() == v1::TolerancePolicy::BITWISE) return out;
  const double squares = policy_.scale_per_row() ? want_squares_ : whole_.squares;
  out.relative_l2 = std::sqrt(error_squares_ / squares);
  if (!(out.relative_l2 <= policy_.relative_l2_max())) return std::nullopt;
  return out;
}

OutputComparison CompareOutput(const v1::TolerancePolicy& policy, const TensorShape& tensor,
                               std::span<const std::byte> got, std::span<const std::byte> want) {
  if (policy.kind() == v1::TolerancePolicy::BITWISE) return CompareBits(tensor, got, want);
  return ScaledComparison(policy, tensor, got.data(), reinterpret_cast<const double*>(want.data()))
      .Run(policy.scale_per_row());
}

}  // namespace assay
