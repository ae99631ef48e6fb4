#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "assay/v1/problem.pb.h"
#include "base/test_matchers.h"
#include "gtest/gtest.h"
#include "kernels/half.h"
#include "kernels/inputs/inputs.h"
#include "kernels/inputs/structure.h"
#include "kernels/testing/problems.h"

namespace assay {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kSeed = 42;

// One input x[n] of the given type and distribution.
v1::Problem OneInput(const std::string& dtype, const std::string& distribution,
                     bool scalable = false) {
  return testing::ProblemFromText(absl::StrCat(
      "name: 'one' axes { name: 'n' } tensors { name: 'x' role: INPUT shape: 'n' dtype: ", dtype,
      " distribution { ", distribution, " } scalable: ", scalable ? "true" : "false", " }"));
}

template <typename T>
std::vector<T> Generate(const v1::Problem& problem, int64_t n, const InputCaseSpec& input_case,
                        uint64_t seed = kSeed) {
  v1::Workload axes;
  axes.mutable_axes()->insert({"n", n});
  const auto workload = ResolveWorkload(problem, axes);
  EXPECT_THAT(workload, IsOk());
  std::vector<T> out(static_cast<size_t>(workload->tensors[0].elements));
  EXPECT_OK(GenerateInput(problem, *workload, 0, input_case, seed,
                          std::as_writable_bytes(std::span(out))));
  return out;
}

struct Moments {
  double mean = 0, deviation = 0, skew = 0, kurtosis = 0, max = 0;
};

template <typename T>
Moments MomentsOf(const std::vector<T>& values) {
  Moments out;
  for (const T v : values) out.mean += v;
  out.mean /= static_cast<double>(values.size());
  double second = 0, third = 0, fourth = 0;
  for (const T v : values) {
    const double d = v - out.mean;
    second += d * d;
    third += d * d * d;
    fourth += d * d * d * d;
    out.max = std::max(out.max, std::fabs(static_cast<double>(v)));
  }
  const double n = static_cast<double>(values.size());
  out.deviation = std::sqrt(second / n);
  out.skew = third / n / std::pow(out.deviation, 3);
  out.kurtosis = fourth / n / std::pow(out.deviation, 4);
  return out;
}

TEST(GenerateTest, NormalHasTheRightDistribution) {
  const auto values = Generate<float>(OneInput("F32", "normal { stddev: 1 }"), 1 << 21, {"x1", -1});
  const Moments moments = MomentsOf(values);
  EXPECT_NEAR(moments.mean, 0, 0.003);
  EXPECT_NEAR(moments.deviation, 1, 0.003);
  EXPECT_NEAR(moments.skew, 0, 0.01);
  EXPECT_NEAR(moments.kurtosis, 3, 0.03);
  EXPECT_GT(moments.max, 4.5);
  EXPECT_LT(moments.max, 6.5);
  // The whole distribution function, at points on both sides of the joint of the two polynomials.
  for (const double at : {-4.0, -3.0, -2.6, -2.5, -2.0, -1.0, -0.1, 0.0, 0.3, 1.5, 2.4, 2.7, 3.5}) {
    const double below = static_cast<double>(
        std::count_if(values.begin(), values.end(), [&](float v) { return v < at; }));
    const double p = std::erfc(-at / std::sqrt(2.0)) / 2;
    const double n = static_cast<double>(values.size());
    EXPECT_NEAR(below, p * n, 5 * std::sqrt(n * p * (1 - p))) << at;
  }
}

TEST(GenerateTest, MeanAndDeviationApply) {
  const Moments moments = MomentsOf(
      Generate<double>(OneInput("F64", "normal { mean: -3 stddev: 0.5 }"), 1 << 18, {"x1", -1}));
  EXPECT_NEAR(moments.mean, -3, 0.01);
  EXPECT_NEAR(moments.deviation, 0.5, 0.01);
  EXPECT_NEAR(moments.kurtosis, 3, 0.1);
}

TEST(GenerateTest, DoublesUseAllTheirBits) {
  for (const char* distribution : {"normal { stddev: 1 }", "uniform { low: -1 high: 1 }"}) {
    const auto values = Generate<double>(OneInput("F64", distribution), 4096, {"x1", -1});
    int as_float = 0;
    for (const double v : values) as_float += v == static_cast<double>(static_cast<float>(v));
    EXPECT_LT(as_float, 8) << distribution;
  }
}

TEST(GenerateTest, UniformStaysInItsRange) {
  const auto floats =
      Generate<float>(OneInput("F32", "uniform { low: 1 high: 2 }"), 1 << 20, {"x1", -1});
  const auto [low, high] = std::minmax_element(floats.begin(), floats.end());
  EXPECT_GE(*low, 1.0f);
  EXPECT_LT(*high, 2.0f);
  EXPECT_LT(*low, 1.0001f);
  EXPECT_GT(*high, 1.9999f);
  EXPECT_NEAR(MomentsOf(floats).mean, 1.5, 0.002);
  EXPECT_NEAR(MomentsOf(floats).deviation, std::sqrt(1.0 / 12), 0.002);
  for (const double v :
       Generate<double>(OneInput("F64", "uniform { low: -5 high: -4 }"), 5000, {"x1", -1})) {
    EXPECT_GE(v, -5);
    EXPECT_LT(v, -4);
  }
}

TEST(GenerateTest, IntegersAreUniformAndReachBothEnds) {
  const auto values =
      Generate<int8_t>(OneInput("I8", "uniform_int { low: -3 high: 3 }"), 70000, {"x1", -1});
  std::map<int, int> counts;
  for (const int8_t v : values) ++counts[v];
  ASSERT_EQ(counts.size(), 7u);
  EXPECT_EQ(counts.begin()->first, -3);
  for (const auto& [value, count] : counts) EXPECT_NEAR(count, 10000, 500) << value;

  const auto wide = Generate<int32_t>(
      OneInput("I32", "uniform_int { low: -2147483648 high: 2147483647 }"), 10000, {"x1", -1});
  EXPECT_LT(*std::min_element(wide.begin(), wide.end()), -2'100'000'000);
  EXPECT_GT(*std::max_element(wide.begin(), wide.end()), 2'100'000'000);

  for (const float v :
       Generate<float>(OneInput("F32", "uniform_int { low: 0 high: 3 }"), 1000, {"x1", -1})) {
    EXPECT_TRUE(v == 0 || v == 1 || v == 2 || v == 3) << v;
  }
}

TEST(GenerateTest, TheHighEndOfIntegersMayFollowFromAxes) {
  const v1::Problem problem =
      OneInput("I32", "uniform_int { low: 1 high_expression: '2 * n - 1' }");
  for (const int64_t n : {1, 4, 5000}) {
    SCOPED_TRACE(n);
    const auto high = static_cast<int32_t>(2 * n - 1);
    int32_t largest = 0;
    for (const int32_t v : Generate<int32_t>(problem, n, {"x1", -1})) {
      EXPECT_GE(v, 1);
      EXPECT_LE(v, high);
      largest = std::max(largest, v);
    }
    EXPECT_GE(largest, high * 9 / 10 - 7);
    for (const int32_t v : Generate<int32_t>(problem, n, {"min", -1})) EXPECT_EQ(v, 1);
    for (const int32_t v : Generate<int32_t>(problem, n, {"max", -1})) EXPECT_EQ(v, high);
    for (const int32_t v : Generate<int32_t>(problem, n, {"extremes", -1})) {
      EXPECT_TRUE(v == 1 || v == high) << v;
    }
  }
}

TEST(GenerateTest, MinMaxAndExtremesOfIntegers) {
  const v1::Problem problem = OneInput("I8", "uniform_int { low: -128 high: 127 }");
  for (const int8_t v : Generate<int8_t>(problem, 3000, {"min", -1})) ASSERT_EQ(v, -128);
  for (const int8_t v : Generate<int8_t>(problem, 3000, {"max", -1})) ASSERT_EQ(v, 127);
  int low = 0;
  for (const int8_t v : Generate<int8_t>(problem, 10000, {"extremes", -1})) {
    ASSERT_TRUE(v == -128 || v == 127);
    low += v == -128;
  }
  EXPECT_NEAR(low, 5000, 300);
}

TEST(GenerateTest, PackedCodes) {
  const v1::Problem problem = OneInput("U8", "packed_codes2 { code_max: 2 }");
  std::array<int, 4> counts{};
  for (const uint8_t v : Generate<uint8_t>(problem, 30000, {"x1", -1})) {
    for (int code = 0; code < 4; ++code) ++counts[(v >> (2 * code)) & 3];
  }
  EXPECT_EQ(counts[3], 0);
  for (int code = 0; code < 3; ++code) EXPECT_NEAR(counts[code], 40000, 1500) << code;
  for (const uint8_t v : Generate<uint8_t>(problem, 100, {"min", -1})) ASSERT_EQ(v, 0);
  for (const uint8_t v : Generate<uint8_t>(problem, 100, {"max", -1})) ASSERT_EQ(v, 0xaa);
  std::set<uint8_t> mixed;
  for (const uint8_t v : Generate<uint8_t>(problem, 3000, {"extremes", -1})) {
    ASSERT_EQ(v & 0x55, 0);
    mixed.insert(v);
  }
  EXPECT_EQ(mixed.size(), 16u);
}

TEST(GenerateTest, ScalesOnlyScalableInputs) {
  for (const bool scalable : {true, false}) {
    const v1::Problem problem = OneInput("F32", "normal { mean: 10 stddev: 0.1 }", scalable);
    const struct {
      const char* name;
      double factor;
    } cases[] = {{"x1", 1}, {"x3", 3}, {"x0.01", 0.01}, {"x-1", -1}, {"min", 1}, {"extremes", 1}};
    for (const auto& c : cases) {
      const double mean = MomentsOf(Generate<float>(problem, 10000, {c.name, -1})).mean;
      const double want = 10 * (scalable ? c.factor : 1);
      EXPECT_NEAR(mean, want, 0.001 * std::fabs(want)) << c.name;
    }
  }
}

TEST(GenerateTest, ContentsDependOnSeedAndCaseAndNothingElse) {
  const v1::Problem problem = OneInput("F32", "normal { stddev: 1 }");
  const auto base = Generate<float>(problem, 5000, {"x1", -1}, 1);
  EXPECT_EQ(Generate<float>(problem, 5000, {"x1", -1}, 1), base);
  EXPECT_NE(Generate<float>(problem, 5000, {"x1", -1}, 2), base);
  EXPECT_NE(Generate<float>(problem, 5000, {"extremes", -1}, 1), base);
  auto longer = Generate<float>(problem, 9000, {"x1", -1}, 1);
  longer.resize(5000);
  EXPECT_EQ(longer, base);
}

TEST(GenerateTest, PartsEqualTheWhole) {
  for (const char* dtype : {"F32", "F64", "F16"}) {
    const v1::Problem problem = OneInput(dtype, "normal { stddev: 1 }");
    v1::Workload axes;
    axes.mutable_axes()->insert({"n", 5000});
    ASSERT_OK_AND_ASSIGN(const ResolvedWorkload workload, ResolveWorkload(problem, axes));
    const size_t size = DataTypeSize(workload.tensors[0].dtype);
    std::vector<std::byte> whole(5000 * size);
    std::vector<std::byte> parts(5000 * size);
    ASSERT_OK(GenerateInput(problem, workload, 0, {"x1", -1}, kSeed, whole));
    for (const auto& [first, count] :
         {std::pair<size_t, size_t>{3000, 2000}, {0, 1}, {1, 1022}, {1023, 2}, {1025, 1975}}) {
      ASSERT_OK(GenerateInputPart(problem, workload, 0, {"x1", -1}, kSeed,
                                  static_cast<int64_t>(first),
                                  std::span(parts).subspan(first * size, count * size)));
    }
    EXPECT_EQ(parts, whole) << dtype;
  }
}

TEST(GenerateTest, SixteenBitTypesAreTheRoundedFloats) {
  const auto floats = Generate<float>(OneInput("F32", "normal { stddev: 1 }"), 3000, {"x1", -1});
  const auto halves = Generate<uint16_t>(OneInput("F16", "normal { stddev: 1 }"), 3000, {"x1", -1});
  const auto brains =
      Generate<uint16_t>(OneInput("BF16", "normal { stddev: 1 }"), 3000, {"x1", -1});
  for (size_t i = 0; i < floats.size(); ++i) {
    EXPECT_NEAR(F16ToFloat(halves[i]), floats[i], std::fabs(floats[i]) * 0x1p-11 + 0x1p-25);
    EXPECT_NEAR(BF16ToFloat(brains[i]), floats[i], std::fabs(floats[i]) * 0x1p-8);
  }
}

// The bits must be the same on every machine: recorded values, with and without wide registers.
TEST(GenerateTest, GoldenBits) {
  const struct {
    const char* dtype;
    const char* distribution;
    uint64_t hash;
  } cases[] = {
      {"F32", "normal { stddev: 1 }", 0x6b4b27e6d7acef64u},
      {"F64", "normal { stddev: 1 }", 0x14a97b0f79c1321du},
      {"F32", "uniform { low: -1 high: 1 }", 0xfaa6af02b49b1146u},
      {"BF16", "normal { stddev: 1 }", 0x24b9e83c70cc1548u},
      {"I8", "uniform_int { low: -128 high: 127 }", 0xf44c460903743b66u},
  };
  for (const auto& c : cases) {
    const v1::Problem problem = OneInput(c.dtype, c.distribution);
    v1::Workload axes;
    axes.mutable_axes()->insert({"n", 2000});
    ASSERT_OK_AND_ASSIGN(const ResolvedWorkload workload, ResolveWorkload(problem, axes));
    std::vector<std::byte> bytes(static_cast<size_t>(workload.tensors[0].bytes));
    ASSERT_OK(GenerateInput(problem, workload, 0, {"x1", -1}, kSeed, bytes));
    uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
    for (const std::byte b : bytes) hash = (hash ^ static_cast<uint64_t>(b)) * 0x100000001b3u;
    EXPECT_EQ(hash, c.hash) << c.dtype << " " << c.distribution << " " << std::hex << hash;
  }
}

TEST(GenerateTest, RefusesBadRequests) {
  const v1::Problem problem = testing::ScaleRowsProblem();
  ASSERT_OK_AND_ASSIGN(const ResolvedWorkload workload,
                       ResolveWorkload(problem, problem.workloads(0)));
  std::vector<std::byte> bytes(128);
  const auto call = [&](size_t tensor, InputCaseSpec input_case, size_t size) {
    return GenerateInput(problem, workload, tensor, input_case, 1, std::span(bytes).first(size));
  };
  EXPECT_OK(call(0, {"x1", -1}, 128));
  EXPECT_THAT(call(0, {"x1", -1}, 124), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(call(2, {"x1", -1}, 128), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(call(3, {"x1", -1}, 128), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(call(0, {"x2", -1}, 128), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(call(0, {"ties", 0}, 128), StatusIs(absl::StatusCode::kInvalidArgument));
  for (const int64_t first :
       {int64_t{-1}, int64_t{1}, int64_t{33}, std::numeric_limits<int64_t>::max()}) {
    EXPECT_THAT(GenerateInputPart(problem, workload, 0, {"x1", -1}, 1, first, bytes),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << first;
  }
}

std::vector<std::string> Names(const v1::Problem& problem) {
  std::vector<std::string> out;
  for (const InputCaseSpec& c : InputBattery(problem)) out.push_back(c.name);
  return out;
}

TEST(BatteryTest, FollowsTheInputs) {
  v1::Problem problem = OneInput("F32", "normal { stddev: 1 }");
  EXPECT_THAT(Names(problem), ElementsAre("x1"));
  problem.mutable_tensors(0)->set_scalable(true);
  const std::vector<std::string> scalable = Names(problem);
  EXPECT_EQ(scalable.size(), 4 + StructureNames().size());
  EXPECT_EQ(scalable[3], "x-1");
  auto* ties = problem.add_input_cases();
  ties->set_name("ties");
  ties->add_overrides()->set_tensor("x");
  ties->mutable_overrides(0)->mutable_distribution()->mutable_uniform_int()->set_high(1);
  EXPECT_EQ(Names(problem).size(), scalable.size() + 1);
  EXPECT_EQ(InputBattery(problem).back().problem_case, 0);
  for (const float v : Generate<float>(problem, 100, InputBattery(problem).back())) {
    EXPECT_TRUE(v == 0 || v == 1);
  }
  EXPECT_THAT(Names(OneInput("U8", "packed_codes2 { code_max: 2 }")),
              ElementsAre("x1", "min", "max", "extremes"));
}

TEST(HalfTest, EveryHalfSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = F16ToFloat(half);
    if ((bits & 0x7c00) == 0x7c00 && (bits & 0x3ff) != 0) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_TRUE(std::isnan(F16ToFloat(FloatToF16(value))));
    } else {
      EXPECT_EQ(FloatToF16(value), half) << bits;
    }
    const float brain = BF16ToFloat(half);
    if (std::isnan(brain)) {
      EXPECT_TRUE(std::isnan(BF16ToFloat(FloatToBF16(brain))));
    } else {
      EXPECT_EQ(FloatToBF16(brain), half) << bits;
    }
  }
}

TEST(HalfTest, RoundsToNearestEven) {
  const struct {
    float value;
    uint16_t half;
  } cases[] = {
      {1.0f, 0x3c00},
      {-2.0f, 0xc000},
      {65504.0f, 0x7bff},
      {65519.99f, 0x7bff},
      {65520.0f, 0x7c00},
      {1e10f, 0x7c00},
      {-1e10f, 0xfc00},
      {0x1p-24f, 0x0001},
      {0x1p-25f, 0x0000},
      {0x1.8p-25f, 0x0001},
      {0x1.8p-24f, 0x0002},
      {-0.0f, 0x8000},
      {1 + 0x1p-11f, 0x3c00},
      {1 + 0x1.8p-10f, 0x3c02},
      {0x1.ff8p-15f, 0x03ff},
      {0x1.ffcp-15f, 0x0400},
      {std::numeric_limits<float>::infinity(), 0x7c00},
  };
  for (const auto& c : cases) EXPECT_EQ(FloatToF16(c.value), c.half) << c.value;
  EXPECT_EQ(FloatToBF16(1 + 0x1p-8f), 0x3f80);
  EXPECT_EQ(FloatToBF16(1 + 0x1.8p-7f), 0x3f82);
  EXPECT_EQ(FloatToBF16(std::numeric_limits<float>::max()), 0x7f80);
}

}  // namespace
}  // namespace assay
