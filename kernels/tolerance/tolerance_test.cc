#include "kernels/tolerance/tolerance.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "assay/v1/problem.pb.h"
#include "base/cpu_caches.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/half.h"

namespace assay {
namespace {

using ::testing::ElementsAre;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

v1::TolerancePolicy Scaled(double relative_l2, double element, bool per_row = false) {
  v1::TolerancePolicy out;
  out.set_kind(v1::TolerancePolicy::SCALED);
  out.set_relative_l2_max(relative_l2);
  out.set_element_max(element);
  out.set_scale_per_row(per_row);
  return out;
}

v1::TolerancePolicy Bitwise() {
  v1::TolerancePolicy out;
  out.set_kind(v1::TolerancePolicy::BITWISE);
  return out;
}

TensorShape Shape(DataType dtype, std::vector<int64_t> dims) {
  TensorShape out;
  out.name = "y";
  out.dtype = dtype;
  out.is_output = true;
  out.dims = std::move(dims);
  out.elements = 1;
  for (const int64_t d : out.dims) out.elements *= d;
  out.bytes = out.elements * static_cast<int64_t>(DataTypeSize(dtype));
  out.reference_element_bytes = 8;
  return out;
}

// `values` as bytes of `dtype`.
std::vector<std::byte> Encode(DataType dtype, const std::vector<double>& values) {
  std::vector<std::byte> out(values.size() * DataTypeSize(dtype));
  for (size_t i = 0; i < values.size(); ++i) {
    const auto put = [&](auto v) { std::memcpy(out.data() + i * sizeof(v), &v, sizeof(v)); };
    switch (dtype) {
      case DataType::kF64:
        put(values[i]);
        break;
      case DataType::kF32:
        put(static_cast<float>(values[i]));
        break;
      case DataType::kF16:
        put(FloatToF16(static_cast<float>(values[i])));
        break;
      case DataType::kBF16:
        put(FloatToBF16(static_cast<float>(values[i])));
        break;
      case DataType::kI32:
        put(static_cast<int32_t>(values[i]));
        break;
      default:
        put(static_cast<int8_t>(values[i]));
    }
  }
  return out;
}

OutputComparison Compare(const v1::TolerancePolicy& policy, DataType dtype,
                         std::vector<int64_t> dims, const std::vector<double>& got,
                         const std::vector<double>& want) {
  return CompareOutput(policy, Shape(dtype, std::move(dims)), Encode(dtype, got),
                       std::as_bytes(std::span(want)));
}

TEST(CompareScaledTest, Rules) {
  const double tiny = std::numeric_limits<float>::min();
  const struct {
    const char* what;
    std::vector<double> got;
    std::vector<double> want;
    bool passed;
    int64_t wrong;
    int64_t first;
  } cases[] = {
      {"equal", {1, 2, 3}, {1, 2, 3}, true, 0, -1},
      {"signs of zero", {-0.0, 1}, {0.0, 1}, true, 0, -1},
      {"within", {1.00001, 2}, {1, 2}, true, 0, -1},
      {"beyond", {1.01, 2}, {1, 2}, false, 1, 0},
      {"small beside large", {0.0005, 1000}, {0, 1000}, true, 0, -1},
      {"NaN where a number should be", {1, kNaN, 3}, {1, 2, 3}, false, 1, 1},
      {"NaN where NaN should be", {1, kNaN, 3}, {1, kNaN, 3}, true, 0, -1},
      {"a number where NaN should be", {1, 2, 3}, {1, kNaN, 3}, false, 1, 1},
      {"Inf where a number should be", {1, 2, kInf}, {1, 2, 3}, false, 1, 2},
      {"Inf where Inf should be", {1, 2, kInf}, {1, 2, kInf}, true, 0, -1},
      {"Inf of the other sign", {1, 2, -kInf}, {1, 2, kInf}, false, 1, 2},
      {"a number where Inf should be", {1, 2, 3}, {1, 2, kInf}, false, 1, 2},
      {"an Inf does not hide an error", {1.5, kInf}, {1, kInf}, false, 1, 0},
      {"a reference beyond f32", {1, kInf}, {1, 1e39}, true, 0, -1},
      {"a reference beyond f32, negative", {1, -kInf}, {1, -1e300}, true, 0, -1},
      {"the largest float for a reference beyond f32",
       {1, std::numeric_limits<float>::max()},
       {1, 1e39},
       false,
       1,
       1},
      {"Inf for the largest float", {1, kInf}, {1, 3.4028234663852886e38}, false, 1, 1},
      {"zeros", {0, 0, -0.0}, {0, 0, 0}, true, 0, -1},
      {"not zero", {0, 1e-30, 0}, {0, 0, 0}, false, 1, 1},
      {"barely not zero, by norm alone", {0, tiny * 1e-6, 0}, {0, 0, 0}, false, 0, -1},
      {"all wrong", {2, 4, 6}, {1, 2, 3}, false, 3, 0},
      {"subnormal references", {1e-40, 2e-40}, {1e-40, 2e-40}, true, 0, -1},
  };
  for (const auto& c : cases) {
    const auto n = static_cast<int64_t>(c.got.size());
    const OutputComparison got = Compare(Scaled(1e-4, 1e-3), DataType::kF32, {n}, c.got, c.want);
    EXPECT_EQ(got.passed, c.passed) << c.what;
    EXPECT_EQ(got.wrong_count, c.wrong) << c.what;
    EXPECT_EQ(got.first_wrong, c.first) << c.what;
  }
}

TEST(CompareScaledTest, ReportsTheNumbers) {
  const OutputComparison got =
      Compare(Scaled(1e-3, 1e-3), DataType::kF64, {2, 2}, {3, 4, 0, 2}, {3, 4, 0, 1});
  EXPECT_FALSE(got.passed);
  EXPECT_EQ(got.first_wrong, 3);
  EXPECT_EQ(got.first_wrong_got, 2);
  EXPECT_EQ(got.first_wrong_want, 1);
  const double rms = std::sqrt(26.0 / 4);
  EXPECT_DOUBLE_EQ(got.first_wrong_error, 1 / (1 + rms));
  EXPECT_DOUBLE_EQ(got.element_error_max, 1 / (1 + rms));
  EXPECT_DOUBLE_EQ(got.relative_l2, std::sqrt(1.0 / 26));
}

TEST(CompareScaledTest, ScalePerRowSeesErrorsInSmallRows) {
  const std::vector<double> want = {1e-3, -1e-3, 1e3, -1e3};
  const std::vector<double> got = {1.1e-3, -1e-3, 1e3, -1e3};
  EXPECT_TRUE(Compare(Scaled(1e-3, 1e-4), DataType::kF32, {2, 2}, got, want).passed);
  const OutputComparison rows =
      Compare(Scaled(1e-3, 1e-4, true), DataType::kF32, {2, 2}, got, want);
  EXPECT_FALSE(rows.passed);
  EXPECT_EQ(rows.first_wrong, 0);
  EXPECT_NEAR(rows.first_wrong_error, 0.05, 1e-3);
}

TEST(CompareScaledTest, TheNormFailsWhatElementsAllow) {
  // Every element is off by half of what one may be.
  const size_t n = 5000;
  const std::vector<double> want(n, 1.0);
  const std::vector<double> got(n, 1.0 + 1e-3);
  const auto dims = std::vector<int64_t>{static_cast<int64_t>(n)};
  const OutputComparison fails = Compare(Scaled(1e-4, 1e-3), DataType::kF64, dims, got, want);
  EXPECT_FALSE(fails.passed);
  EXPECT_EQ(fails.wrong_count, 0);
  EXPECT_EQ(fails.first_wrong, -1);
  EXPECT_NEAR(fails.relative_l2, 1e-3, 1e-9);
  EXPECT_NEAR(fails.element_error_max, 5e-4, 1e-9);
  EXPECT_TRUE(Compare(Scaled(2e-3, 1e-3), DataType::kF64, dims, got, want).passed);
}

TEST(CompareScaledTest, OneWrongElementInAMillion) {
  Random random(9);
  const size_t n = 1'000'003;
  std::vector<double> want(n);
  for (double& v : want) v = static_cast<float>(random.Uniform() - 0.5);
  for (const size_t at : {size_t{0}, size_t{63}, size_t{1024}, size_t{777'777}, n - 1}) {
    for (const double value : {want[at] + 0.01, kNaN, -kInf}) {
      std::vector<double> got = want;
      got[at] = value;
      for (const DataType dtype : {DataType::kF32, DataType::kF64}) {
        const OutputComparison result =
            Compare(Scaled(1e-2, 1e-3), dtype, {static_cast<int64_t>(n)}, got, want);
        EXPECT_FALSE(result.passed);
        EXPECT_EQ(result.wrong_count, 1);
        EXPECT_EQ(result.first_wrong, static_cast<int64_t>(at));
      }
    }
  }
  EXPECT_TRUE(
      Compare(Scaled(1e-7, 1e-7), DataType::kF32, {static_cast<int64_t>(n)}, want, want).passed);
}

// Fast and careful blocks must agree on every length, also where the last group is padded.
TEST(CompareScaledTest, EveryLengthCountsTheSame) {
  Random random(10);
  for (int64_t n = 1; n < 200; ++n) {
    std::vector<double> want(static_cast<size_t>(n));
    std::vector<double> got(static_cast<size_t>(n));
    double squares = 0, errors = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      want[i] = random.Uniform() + 0.5;
      got[i] = want[i] + (random.Uniform() - 0.5) * 1e-5;
      squares += want[i] * want[i];
      errors += (got[i] - want[i]) * (got[i] - want[i]);
    }
    const double rms = std::sqrt(squares / static_cast<double>(n));
    double worst = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      worst = std::max(worst, std::fabs(got[i] - want[i]) / (want[i] + rms));
    }
    OutputComparison result = Compare(Scaled(1e-4, 1e-4), DataType::kF64, {n}, got, want);
    EXPECT_TRUE(result.passed) << n;
    EXPECT_NEAR(result.element_error_max, worst, 1e-12 * worst) << n;
    EXPECT_NEAR(result.relative_l2, std::sqrt(errors / squares), 1e-15) << n;
    got.back() += 1;
    result = Compare(Scaled(1e-4, 1e-4), DataType::kF64, {n}, got, want);
    EXPECT_EQ(result.wrong_count, 1) << n;
    EXPECT_EQ(result.first_wrong, n - 1) << n;
  }
}

TEST(CompareScaledTest, ExtremeMagnitudesNeitherOverflowNorVanish) {
  for (const double magnitude : {1e-300, 1e-200, 1.0, 1e200, 1e300}) {
    const std::vector<double> want = {magnitude, 2 * magnitude, -3 * magnitude};
    std::vector<double> got = want;
    EXPECT_TRUE(Compare(Scaled(1e-9, 1e-9), DataType::kF64, {3}, got, want).passed) << magnitude;
    got[1] *= 1 + 1e-12;
    EXPECT_TRUE(Compare(Scaled(1e-9, 1e-9), DataType::kF64, {3}, got, want).passed) << magnitude;
    got[1] *= 1.1;
    const OutputComparison wrong = Compare(Scaled(1e-3, 1e-3), DataType::kF64, {3}, got, want);
    EXPECT_FALSE(wrong.passed) << magnitude;
    EXPECT_NEAR(wrong.relative_l2, 0.2 / std::sqrt(14), 1e-9) << magnitude;
  }
}

TEST(CompareScaledTest, SixteenBitOutputs) {
  const std::vector<double> want = {1.0 / 3, -2.0 / 3, 1000.0 / 7};
  EXPECT_TRUE(Compare(Scaled(1e-3, 1e-3), DataType::kF16, {3}, want, want).passed);
  EXPECT_FALSE(Compare(Scaled(1e-5, 1e-5), DataType::kF16, {3}, want, want).passed);
  EXPECT_TRUE(Compare(Scaled(5e-3, 5e-3), DataType::kBF16, {3}, want, want).passed);
  EXPECT_FALSE(Compare(Scaled(1e-4, 1e-4), DataType::kBF16, {3}, want, want).passed);
  // 65519 rounds to the largest half, 65520 to infinity.
  EXPECT_TRUE(Compare(Scaled(1e-2, 1e-2), DataType::kF16, {2}, {1, 65504}, {1, 65519}).passed);
  EXPECT_FALSE(Compare(Scaled(1e-2, 1e-2), DataType::kF16, {2}, {1, 65504}, {1, 65520}).passed);
  EXPECT_TRUE(Compare(Scaled(1e-2, 1e-2), DataType::kF16, {2}, {1, kInf}, {1, 65520}).passed);
}

// Streamed in parts of some rows, an output compares as it does whole, or is left to that.
TEST(StreamedComparisonTest, SaysWhatTheWholeComparisonSays) {
  Random random(7);
  for (const DataType dtype : {DataType::kF32, DataType::kF64, DataType::kF16, DataType::kBF16}) {
    for (const bool per_row : {false, true}) {
      for (const double error : {0.0, 1e-3, 1.0}) {
        for (const double factor : {1.0, 4.0, -0.5}) {
          const TensorShape tensor = Shape(dtype, {37, 1500});
          const auto count = static_cast<size_t>(tensor.elements);
          std::vector<double> base(count), got(count);
          for (double& value : base) value = random.Uniform() * 2 - 1;
          const OutputScale scale = ScaleOfOutput(tensor, std::as_bytes(std::span(base)));
          for (double& value : base) value *= factor;
          for (size_t i = 0; i < count; ++i) got[i] = base[i] * (1 + 1e-2 * random.Uniform());
          if (error > 0) got[random.Below(count)] += error;
          const std::vector<std::byte> bytes = Encode(dtype, got);
          const std::span<const std::byte> want = std::as_bytes(std::span(base));
          const v1::TolerancePolicy policy = Scaled(0.1, 0.1, per_row);
          const OutputComparison whole = CompareOutput(policy, tensor, bytes, want);
          StreamedComparison streamed(policy, tensor, bytes, scale.Times(factor, dtype));
          for (size_t at = 0; at < want.size(); at += 5 * 1500 * 8) {
            streamed.Take(want.subspan(at, std::min<size_t>(5 * 1500 * 8, want.size() - at)));
          }
          const std::optional<OutputComparison> out = streamed.Finish();
          EXPECT_EQ(out.has_value(), whole.passed) << error << " " << per_row;
          EXPECT_EQ(whole.passed, error < 0.5);
          const int64_t cut = 1500 * 11;
          StreamedComparison first(policy, tensor, bytes, scale.Times(factor, dtype));
          StreamedComparison second(policy, tensor, bytes, scale.Times(factor, dtype), cut);
          first.Take(want.first(cut * 8));
          second.Take(want.subspan(cut * 8));
          EXPECT_FALSE(first.Finish().has_value()) << "half of it is missing";
          EXPECT_FALSE(second.Finish().has_value()) << "half of it is missing";
          first.Add(second);
          ASSERT_EQ(first.Finish().has_value(), out.has_value());
          if (!out.has_value()) continue;
          EXPECT_NEAR(first.Finish()->relative_l2, whole.relative_l2, 1e-12);
          EXPECT_EQ(first.Finish()->element_error_max, whole.element_error_max);
          EXPECT_NEAR(out->relative_l2, whole.relative_l2, 1e-12);
          EXPECT_EQ(out->element_error_max, whole.element_error_max);
        }
      }
    }
  }
}

// What the sums of the fast way cannot hold is told by the careful one alone.
TEST(StreamedComparisonTest, LeavesWhatIsNotOrdinary) {
  const TensorShape tensor = Shape(DataType::kF32, {2, 64});
  const v1::TolerancePolicy policy = Scaled(0.1, 0.1, true);
  for (const double odd : {kNaN, kInf, 1e39, 0.0}) {
    std::vector<double> want(128, odd == 0 ? 0.0 : 1.0);
    want[70] = odd;
    const std::vector<std::byte> got = Encode(DataType::kF32, want);
    StreamedComparison streamed(policy, tensor, got, OutputScale());
    streamed.Take(std::as_bytes(std::span(want)));
    EXPECT_FALSE(streamed.Finish().has_value()) << odd;
    EXPECT_TRUE(CompareOutput(policy, tensor, got, std::as_bytes(std::span(want))).passed) << odd;
  }
  const std::vector<double> largest(128, 1e38);
  const OutputScale large = ScaleOfOutput(tensor, std::as_bytes(std::span(largest)));
  EXPECT_TRUE(large.ordinary);
  EXPECT_FALSE(large.Times(8, DataType::kF32).ordinary) << "beyond f32";
  EXPECT_FALSE(large.Times(0x1p-255, DataType::kF32).ordinary) << "no normal number";
  v1::TolerancePolicy bits = Bitwise();
  TensorShape exact = tensor;
  exact.reference_element_bytes = 4;
  std::vector<float> values(128, 1.5f);
  for (const bool right : {true, false}) {
    StreamedComparison streamed(bits, exact, std::as_bytes(std::span(values)), OutputScale());
    std::vector<float> want(128, 1.5f);
    if (!right) want[100] = 1.25f;
    streamed.Take(std::as_bytes(std::span(want)).first(256));
    EXPECT_FALSE(streamed.Finish().has_value()) << "half of it is missing";
    streamed.Take(std::as_bytes(std::span(want)).subspan(256));
    EXPECT_EQ(streamed.Finish().has_value(), right);
  }
}

TEST(CompareBitwiseTest, EveryBitCounts) {
  const auto compare = [](DataType dtype, std::vector<double> got, std::vector<double> want) {
    const auto n = static_cast<int64_t>(got.size());
    return CompareOutput(Bitwise(), Shape(dtype, {n}), Encode(dtype, got), Encode(dtype, want));
  };
  EXPECT_TRUE(compare(DataType::kF32, {1, -0.0, kNaN}, {1, -0.0, kNaN}).passed);
  const OutputComparison zero = compare(DataType::kF32, {1, 0.0}, {1, -0.0});
  EXPECT_FALSE(zero.passed);
  EXPECT_EQ(zero.first_wrong, 1);
  EXPECT_EQ(zero.wrong_count, 1);
  EXPECT_FALSE(compare(DataType::kF32, {std::nextafter(1.0f, 2.0f)}, {1}).passed);
  EXPECT_FALSE(compare(DataType::kF64, {std::nextafter(1.0, 2.0)}, {1}).passed);
  EXPECT_FALSE(compare(DataType::kF32, {kNaN}, {1}).passed);
  const OutputComparison ints = compare(DataType::kI32, {1, 5, 9}, {1, 2, 8});
  EXPECT_FALSE(ints.passed);
  EXPECT_EQ(ints.wrong_count, 2);
  EXPECT_EQ(ints.first_wrong, 1);
  EXPECT_EQ(ints.first_wrong_got, 5);
  EXPECT_EQ(ints.first_wrong_want, 2);
  EXPECT_EQ(ints.element_error_max, 3);
  EXPECT_TRUE(compare(DataType::kI8, {-128, 127}, {-128, 127}).passed);
}

TEST(PoisonTest, CountsWhatWasNotWritten) {
  for (const DataType dtype : {DataType::kF32, DataType::kF64, DataType::kF16, DataType::kBF16,
                               DataType::kI32, DataType::kI8, DataType::kU8}) {
    const TensorShape shape = Shape(dtype, {10, 10});
    std::vector<std::byte> bytes(static_cast<size_t>(shape.bytes));
    EXPECT_EQ(CountPoisoned(shape, bytes), 0);
    PoisonOutput(shape, bytes);
    EXPECT_EQ(CountPoisoned(shape, bytes), 100) << DataTypeCpp(dtype);
    const auto one = Encode(dtype, {1});
    std::copy(one.begin(), one.end(), bytes.begin() + static_cast<int64_t>(7 * one.size()));
    EXPECT_EQ(CountPoisoned(shape, bytes), 99) << DataTypeCpp(dtype);
  }
}

TEST(PoisonTest, FillsWhatTheCachesCannotHold) {
  constexpr size_t kBeside = 4;  // so that nothing is aligned to more
  for (const DataType dtype : {DataType::kF32, DataType::kI8}) {
    const auto size = static_cast<int64_t>(DataTypeSize(dtype));
    const int64_t elements = static_cast<int64_t>(LastLevelCacheBytes()) / size + 12'345;
    const TensorShape shape = Shape(dtype, {elements});
    std::vector<std::byte> bytes(static_cast<size_t>(shape.bytes) + 2 * kBeside);
    const std::span<std::byte> output =
        std::span(bytes).subspan(kBeside, bytes.size() - 2 * kBeside);
    PoisonOutput(shape, output);
    EXPECT_EQ(CountPoisoned(shape, output), elements) << DataTypeCpp(dtype);
    for (size_t i = 0; i < kBeside; ++i) {
      EXPECT_EQ(bytes[i], std::byte{0});
      EXPECT_EQ(bytes[bytes.size() - 1 - i], std::byte{0});
    }
  }
}

TEST(PoisonTest, FloatsArePoisonedWithAQuietNaNUnlikeOthers) {
  for (const DataType dtype : {DataType::kF32, DataType::kF64, DataType::kF16, DataType::kBF16}) {
    const TensorShape shape = Shape(dtype, {1});
    std::vector<std::byte> bytes(static_cast<size_t>(shape.bytes));
    PoisonOutput(shape, bytes);
    // A NaN compares wrong with every number.
    const std::vector<double> want = {1.0};
    EXPECT_FALSE(
        CompareOutput(Scaled(0.9, 0.9), shape, bytes, std::as_bytes(std::span(want))).passed);
    const auto computed = Encode(dtype, {kNaN});
    EXPECT_EQ(CountPoisoned(shape, computed), 0) << DataTypeCpp(dtype);
  }
}

TEST(UnflattenIndexTest, RowMajor) {
  const TensorShape shape = Shape(DataType::kF32, {2, 3, 4});
  EXPECT_THAT(UnflattenIndex(shape, 0), ElementsAre(0, 0, 0));
  EXPECT_THAT(UnflattenIndex(shape, 23), ElementsAre(1, 2, 3));
  EXPECT_THAT(UnflattenIndex(shape, 13), ElementsAre(1, 0, 1));
}

}  // namespace
}  // namespace assay
