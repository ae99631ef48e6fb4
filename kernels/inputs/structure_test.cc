#include "kernels/inputs/structure.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "assay/v1/problem.pb.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "kernels/half.h"
#include "kernels/inputs/inputs.h"
#include "kernels/testing/problems.h"

namespace assay {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kSeed = 7;

// c = a b with scalable inputs of one type.
v1::Problem Product(const std::string& in, const std::string& out) {
  const std::string tail = absl::StrCat(
      " dtype: ", in, " role: INPUT scalable: true distribution { normal { stddev: 1 } } }");
  return testing::ProblemFromText(
      absl::StrCat("name: 'product' axes { name: 'm' } axes { name: 'n' } axes { name: 'k' }",
                   "tensors { name: 'a' shape: 'm' shape: 'k'", tail,
                   "tensors { name: 'b' shape: 'k' shape: 'n'", tail,
                   "tensors { name: 'c' shape: 'm' shape: 'n' role: OUTPUT dtype: ", out,
                   " tolerance { kind: SCALED } }",
                   "transforms { permutation { inputs { tensor: 'a' dimension: 0 }"
                   " outputs { tensor: 'c' dimension: 0 } } }",
                   "transforms { permutation { inputs { tensor: 'b' dimension: 1 }"
                   " outputs { tensor: 'c' dimension: 1 } } }"));
}

ResolvedWorkload Resolved(const v1::Problem& problem, int64_t m, int64_t n, int64_t k) {
  v1::Workload axes;
  *axes.mutable_axes() = {};
  (*axes.mutable_axes())["m"] = m;
  (*axes.mutable_axes())["n"] = n;
  (*axes.mutable_axes())["k"] = k;
  const auto workload = ResolveWorkload(problem, axes);
  EXPECT_THAT(workload, IsOk());
  return workload.value_or(ResolvedWorkload());
}

// All values of an input as doubles.
std::vector<double> Values(const v1::Problem& problem, const ResolvedWorkload& workload,
                           size_t tensor, const std::string& input_case, uint64_t seed = kSeed) {
  const TensorShape& shape = workload.tensors[tensor];
  std::vector<std::byte> bytes(static_cast<size_t>(shape.bytes));
  EXPECT_OK(GenerateInput(problem, workload, tensor, {input_case, -1}, seed, bytes));
  std::vector<double> out;
  for (int64_t i = 0; i < shape.elements; ++i) {
    const std::byte* at = bytes.data() + i * shape.bytes / shape.elements;
    if (shape.dtype == DataType::kF64) {
      double value;
      std::memcpy(&value, at, sizeof value);
      out.push_back(value);
    } else if (shape.dtype == DataType::kF32) {
      float value;
      std::memcpy(&value, at, sizeof value);
      out.push_back(double{value});
    } else {
      uint16_t value;
      std::memcpy(&value, at, sizeof value);
      out.push_back(double{shape.dtype == DataType::kF16 ? F16ToFloat(value) : BF16ToFloat(value)});
    }
  }
  return out;
}

double MeanMagnitude(const std::vector<double>& values, size_t from, size_t to) {
  double sum = 0;
  for (size_t i = from; i < to; ++i) sum += std::fabs(values[i]);
  return sum / static_cast<double>(to - from);
}

TEST(StructureTest, TheBatteryHasThemUnlessTheProblemSaysOtherwise) {
  v1::Problem problem = Product("F32", "F32");
  const auto names = [&problem] {
    std::vector<std::string> out;
    for (const InputCaseSpec& spec : InputBattery(problem)) out.push_back(spec.name);
    return out;
  };
  EXPECT_THAT(names(),
              ElementsAre("x1", "x3", "x0.01", "x-1", "mixed", "heavy_tail", "constant_rows",
                          "one_hot", "sorted", "cancelling", "exact_integers"));
  for (const InputCaseSpec& spec : InputBattery(problem)) {
    EXPECT_EQ(IsDrawnInputCase(spec), spec.name != "x1") << spec.name;
  }
  problem.MergeFrom(testing::ProblemFromText(
      "input_cases { name: 'sorted' } input_cases { name: 'mixed' overrides { tensor: 'a' "
      "distribution { normal { stddev: 9 } } } }"));
  EXPECT_THAT(names(), ElementsAre("x1", "x3", "x0.01", "x-1", "heavy_tail", "constant_rows",
                                   "one_hot", "cancelling", "exact_integers", "mixed"));
  for (v1::Tensor& tensor : *problem.mutable_tensors()) tensor.set_scalable(false);
  EXPECT_THAT(names(), ElementsAre("x1", "mixed"));
}

TEST(StructureTest, PartsAreFilledAsTheWhole) {
  for (const char* type : {"F32", "F64", "F16"}) {
    const v1::Problem problem = Product(type, "F32");
    const ResolvedWorkload workload = Resolved(problem, 37, 5, 131);
    const auto bytes = static_cast<size_t>(workload.tensors[0].bytes);
    const size_t size = bytes / (37 * 131);
    for (const std::string_view name : StructureNames()) {
      std::vector<std::byte> whole(bytes);
      std::vector<std::byte> parts(bytes);
      const InputCaseSpec spec = {std::string(name), -1};
      ASSERT_OK(GenerateInput(problem, workload, 0, spec, kSeed, whole));
      for (size_t at = 0; at < bytes / size;) {
        const size_t take = std::min<size_t>(777, bytes / size - at);
        ASSERT_OK(GenerateInputPart(problem, workload, 0, spec, kSeed, static_cast<int64_t>(at),
                                    std::span(parts).subspan(at * size, take * size)));
        at += take;
      }
      EXPECT_EQ(whole, parts) << type << " " << name;
    }
  }
}

TEST(StructureTest, MixedHasABoundaryThatNobodyKnows) {
  const v1::Problem problem = Product("F32", "F32");
  const ResolvedWorkload workload = Resolved(problem, 100, 3, 100);
  std::set<bool> large_first;
  std::set<size_t> boundaries;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    const std::vector<double> values = Values(problem, workload, 0, "mixed", seed);
    // Where the magnitudes to both sides differ most.
    double best = 0;
    size_t boundary = 0;
    for (size_t at = 500; at + 500 < values.size(); at += 50) {
      const double jump = std::fabs(
          std::log(MeanMagnitude(values, at - 500, at) / MeanMagnitude(values, at, at + 500)));
      if (jump > best) {
        best = jump;
        boundary = at;
      }
    }
    if (best < 0.8) continue;  // too near to an end
    boundaries.insert(boundary);
    large_first.insert(MeanMagnitude(values, boundary - 500, boundary) >
                       MeanMagnitude(values, boundary, boundary + 500));
  }
  EXPECT_GE(boundaries.size(), 5u);
  EXPECT_EQ(large_first.size(), 2u);
}

TEST(StructureTest, HeavyTailHasFewLargeElements) {
  const v1::Problem problem = Product("F32", "F32");
  const std::vector<double> values =
      Values(problem, Resolved(problem, 256, 3, 256), 0, "heavy_tail");
  const auto large =
      std::count_if(values.begin(), values.end(), [](double v) { return std::fabs(v) > 0.9; });
  // 3 N(0, 1) is beyond 0.9 in 76 of 100 cases.
  EXPECT_NEAR(static_cast<double>(large), 65536.0 / 32 * 0.764, 200);
}

TEST(StructureTest, RowsAreConstantAndOnAGrid) {
  for (const char* type : {"F32", "F64", "BF16"}) {
    const v1::Problem problem = Product(type, "F32");
    const std::vector<double> values =
        Values(problem, Resolved(problem, 50, 3, 321), 0, "constant_rows");
    std::set<double> distinct;
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(values[i], values[i / 321 * 321]) << i;
      EXPECT_EQ(values[i] * 4, std::nearbyint(values[i] * 4));
      distinct.insert(values[i]);
    }
    EXPECT_GE(distinct.size(), 5u);
  }
}

TEST(StructureTest, OneElementOfEachRowOfOneInputIsNotZero) {
  const v1::Problem problem = Product("F32", "F32");
  const ResolvedWorkload workload = Resolved(problem, 700, 50, 3);
  std::set<bool> drawn;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const std::vector<double> a = Values(problem, workload, 0, "one_hot", seed);
    const std::vector<double> b = Values(problem, workload, 1, "one_hot", seed);
    const bool in_a = std::count(a.begin(), a.end(), 0.0) > 0;
    const bool in_b = std::count(b.begin(), b.end(), 0.0) > 0;
    EXPECT_NE(in_a, in_b) << "one input has it, seed " << seed;
    drawn.insert(in_a);
    const std::vector<double>& hot = in_a ? a : b;
    const size_t row = in_a ? 3 : 50;
    std::set<size_t> places;
    for (size_t i = 0; i < hot.size(); i += row) {
      size_t count = 0;
      for (size_t j = 0; j < row; ++j) {
        if (hot[i + j] == 0) continue;
        ++count;
        places.insert(j);
      }
      EXPECT_EQ(count, 1u) << i;
    }
    EXPECT_GT(places.size(), 1u);
  }
  EXPECT_EQ(drawn.size(), 2u);
}

TEST(StructureTest, RowsOfOneInputAreSortedEitherWay) {
  for (const char* type : {"F32", "F64"}) {
    const v1::Problem problem = Product(type, "F32");
    const ResolvedWorkload workload = Resolved(problem, 4, 4, 3000);
    std::set<bool> directions;
    for (uint64_t seed = 1; seed <= 16; ++seed) {
      const std::vector<double> a = Values(problem, workload, 0, "sorted", seed);
      const bool up = std::is_sorted(a.begin(), a.begin() + 3000);
      const bool down = std::is_sorted(a.rbegin(), a.rbegin() + 3000);
      if (!up && !down) continue;  // b was drawn
      directions.insert(up);
      // It is still normal.
      double squares = 0;
      for (size_t i = 0; i < 3000; ++i) squares += a[i] * a[i];
      EXPECT_NEAR(squares / 3000, 1, 0.02);
      EXPECT_NE(a[17], a[3017]);
    }
    EXPECT_EQ(directions.size(), 2u) << type;
  }
}

TEST(StructureTest, NeighboursCancelBesideSmallElements) {
  const v1::Problem problem = Product("F32", "F32");
  const std::vector<double> values =
      Values(problem, Resolved(problem, 100, 3, 100), 0, "cancelling");
  size_t pairs = 0;
  double rest = 0;
  for (size_t i = 0; i < values.size(); i += 2) {
    if (values[i] == -values[i + 1]) {
      ++pairs;
    } else {
      rest = std::max(rest, std::fabs(values[i]));
    }
  }
  EXPECT_NEAR(static_cast<double>(pairs), 0.75 * 5000, 150);
  EXPECT_LT(rest, 6.5 / 8);
  EXPECT_GT(rest, 0);
}

// The claim itself: sums of products are exact in the accumulator whatever the order, while
// operands or sums of fewer bits are not.
TEST(StructureTest, SumsOfExactIntegersAreExact) {
  const struct {
    const char* in;
    const char* out;
    int64_t k;
    int wide;  // bits
    int narrow;
  } rows[] = {
      {"F32", "F32", 1, 20, 1},     {"F32", "F32", 256, 16, 1},    {"F32", "F32", 4099, 13, 1},
      {"F32", "F32", 65536, 12, 1}, {"F16", "F32", 256, 11, 6},    {"F16", "F32", 16384, 11, 3},
      {"BF16", "F32", 256, 8, 8},   {"F64", "F64", 65536, 30, 12},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(absl::StrCat(row.in, " k = ", row.k));
    const v1::Problem problem = Product(row.in, row.out);
    const ResolvedWorkload workload = Resolved(problem, 3, 2, row.k);
    EXPECT_EQ(ReductionLengthMax(problem, workload), row.k);
    std::vector<double> a = Values(problem, workload, 0, "exact_integers");
    std::vector<double> b = Values(problem, workload, 1, "exact_integers");
    const auto largest = [](const std::vector<double>& values) {
      double out = 0;
      for (const double v : values) out = std::max(out, std::fabs(v));
      return out;
    };
    const double wide = std::max(largest(a), largest(b));
    const double narrow = std::min(largest(a), largest(b));
    EXPECT_LT(wide, std::ldexp(1, row.wide));
    EXPECT_GT(wide, std::ldexp(1, row.wide - 1) - 0.5);
    EXPECT_LT(narrow, std::ldexp(1, row.narrow));
    for (const double v : a) EXPECT_EQ(std::fmod(std::fabs(v), 2), 1);
    const double limit = row.out == std::string("F64") ? 0x1p53 : 0x1p24;
    for (int64_t i = 0; i < 3; ++i) {
      for (int64_t j = 0; j < 2; ++j) {
        double forward = 0;
        double reach = 0;
        double positive = 0;
        for (int64_t p = 0; p < row.k; ++p) {
          const double term = a[i * row.k + p] * b[p * 2 + j];
          forward += term;
          reach = std::max(reach, std::fabs(forward));
          positive = std::max(positive, std::fabs(term));
        }
        EXPECT_LT(reach, limit);
        EXPECT_LT(positive, limit);
      }
    }
  }
}

TEST(StructureTest, VectorsHaveRunsForRows) {
  const v1::Problem problem = testing::ProblemFromText(
      "name: 'one' axes { name: 'n' } tensors { name: 'x' role: INPUT shape: 'n' dtype: F32 "
      "scalable: true distribution { uniform { low: 1 high: 2 } } }");
  v1::Workload axes;
  (*axes.mutable_axes())["n"] = 1000;
  ASSERT_OK_AND_ASSIGN(const ResolvedWorkload workload, ResolveWorkload(problem, axes));
  const std::vector<double> hot = Values(problem, workload, 0, "one_hot");
  EXPECT_EQ(std::count_if(hot.begin(), hot.end(), [](double v) { return v != 0; }), 16);
  const std::vector<double> sorted = Values(problem, workload, 0, "sorted");
  EXPECT_TRUE(std::is_sorted(sorted.begin(), sorted.end()) ||
              std::is_sorted(sorted.rbegin(), sorted.rend()));
  EXPECT_GE(*std::min_element(sorted.begin(), sorted.end()), 1);
  EXPECT_LT(*std::max_element(sorted.begin(), sorted.end()), 2);
  EXPECT_EQ(ReductionLengthMax(problem, workload), 1000);
}

}  // namespace
}  // namespace assay
