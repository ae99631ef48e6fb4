#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "assay/v1/problem.pb.h"
#include "base/cpu_caches.h"
#include "base/test_matchers.h"
#include "gtest/gtest.h"
#include "kernels/half.h"
#include "kernels/inputs/inputs.h"
#include "kernels/testing/problems.h"

namespace assay {
namespace {

using Buffers = std::vector<std::vector<std::byte>>;
// Computes reference outputs from inputs. Buffers are in the order of the workload's tensors.
using Kernel = std::function<void(const ResolvedWorkload&, Buffers&)>;

template <typename T>
T* Data(Buffers& buffers, size_t tensor) {
  return reinterpret_cast<T*>(buffers[tensor].data());
}

Buffers Allocate(const ResolvedWorkload& workload) {
  Buffers out;
  for (const TensorShape& tensor : workload.tensors) {
    out.emplace_back(static_cast<size_t>(
        tensor.is_output ? tensor.elements * tensor.reference_element_bytes : tensor.bytes));
  }
  return out;
}

ResolvedWorkload Resolve(const v1::Problem& problem, std::map<std::string, int64_t> axes) {
  v1::Workload workload;
  workload.mutable_axes()->insert(axes.begin(), axes.end());
  auto out = ResolveWorkload(problem, workload);
  EXPECT_THAT(out, IsOk());
  return out.ok() ? *out : ResolvedWorkload();
}

// The shares of a tensor, in order, are the whole; `rows`: each is of whole rows.
std::vector<ElementRange> Shares(const TensorShape& tensor, bool rows, int count) {
  std::vector<ElementRange> shares;
  int64_t end = 0;
  for (int i = 0; i < count; ++i) {
    shares.push_back(ShareOfElements(tensor, rows, i, count));
    if (shares.back().begin == shares.back().end) continue;
    EXPECT_EQ(shares.back().begin, end);
    end = shares.back().end;
    if (rows) {
      EXPECT_EQ(end % tensor.dims.back(), 0);
    }
  }
  EXPECT_EQ(end, tensor.elements);
  return shares;
}

// Parts, one after the other, are the whole; `rows`: each is of whole rows.
void ExpectStreamed(const DrawnTransform& drawn, const TensorShape& tensor, size_t index, bool rows,
                    int shares, const std::vector<std::byte>& from,
                    const std::vector<std::byte>& want) {
  std::vector<std::byte> got;
  const auto row_bytes = static_cast<size_t>(tensor.dims.back() * tensor.reference_element_bytes);
  for (const ElementRange& share : Shares(tensor, rows, shares)) {
    drawn.StreamReference(index, from, rows, share, [&](std::span<const std::byte> part) {
      EXPECT_FALSE(part.empty());
      if (rows) {
        EXPECT_EQ(part.size() % row_bytes, 0u);
      } else {
        EXPECT_LE(part.size(), size_t{64} << 10);
      }
      got.insert(got.end(), part.begin(), part.end());
    });
  }
  EXPECT_TRUE(got == want) << tensor.name << " rows " << rows << " shares " << shares;
}

// kernel(transform(inputs)) == transform(kernel(inputs)), for several seeds. `close` compares
// doubles whose sums may be taken in another order.
void CheckAlgebra(const v1::Problem& problem, std::map<std::string, int64_t> axes,
                  const Kernel& kernel, double relative = 0) {
  const ResolvedWorkload workload = Resolve(problem, axes);
  Buffers plain = Allocate(workload);
  for (size_t i = 0; i < plain.size(); ++i) {
    if (workload.tensors[i].is_output) continue;
    ASSERT_OK(GenerateInput(problem, workload, i, {"x1", -1}, 5, plain[i]));
  }
  kernel(workload, plain);
  bool changed = false;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    ASSERT_OK_AND_ASSIGN(const DrawnTransform drawn, DrawnTransform::Draw(problem, workload, seed));
    Buffers moved = Allocate(workload);
    Buffers want = Allocate(workload);
    for (size_t i = 0; i < plain.size(); ++i) {
      if (workload.tensors[i].is_output) {
        drawn.ApplyToReference(i, plain[i], want[i]);
        for (const int shares : {1, 2, 3}) {
          for (const bool rows : {false, true}) {
            ExpectStreamed(drawn, workload.tensors[i], i, rows, shares, plain[i], want[i]);
          }
        }
      } else {
        for (const ElementRange& share :
             Shares(workload.tensors[i], false, static_cast<int>(seed))) {
          drawn.ApplyToInput(i, plain[i], moved[i], share);
        }
        changed = changed || moved[i] != plain[i];
      }
    }
    kernel(workload, moved);
    for (size_t i = 0; i < plain.size(); ++i) {
      const TensorShape& tensor = workload.tensors[i];
      if (!tensor.is_output) continue;
      if (relative == 0) {
        ASSERT_EQ(moved[i], want[i]) << tensor.name;
        continue;
      }
      for (int64_t e = 0; e < tensor.elements; ++e) {
        const double w = Data<double>(want, i)[e];
        ASSERT_NEAR(Data<double>(moved, i)[e], w, relative * std::fabs(w)) << tensor.name;
      }
    }
  }
  EXPECT_TRUE(changed);
}

void ScaleRows(const ResolvedWorkload& w, Buffers& b) {
  const int64_t cols = w.axes.at("cols");
  for (int64_t i = 0; i < w.tensors[0].elements; ++i) {
    Data<double>(b, 2)[i] = static_cast<double>(Data<float>(b, 0)[i]) * Data<float>(b, 1)[i / cols];
  }
}

TEST(TransformTest, PermutationsOfRowsAndColumnsComposeWithScales) {
  const v1::Problem problem = testing::ScaleRowsProblem();
  CheckAlgebra(problem, {{"rows", 7}, {"cols", 13}}, ScaleRows);
  CheckAlgebra(problem, {{"rows", 1}, {"cols", 300}}, ScaleRows);
  CheckAlgebra(problem, {{"rows", 300}, {"cols", 1}}, ScaleRows);
}

TEST(TransformTest, LargeTensorsGoBySmallBlocks) {
  const v1::Problem problem = testing::ScaleRowsProblem();
  CheckAlgebra(problem, {{"rows", 1100}, {"cols", 1000}}, ScaleRows);
  CheckAlgebra(problem, {{"rows", 300'000}, {"cols", 5}}, ScaleRows);
}

TEST(TransformTest, InputsThatTheCachesCannotHoldAreTheSame) {
  const v1::Problem problem = testing::ScaleRowsProblem();
  constexpr int64_t kCols = 999;
  const int64_t rows = static_cast<int64_t>(LastLevelCacheBytes() / sizeof(float)) / kCols + 5;
  const ResolvedWorkload workload = Resolve(problem, {{"rows", rows}, {"cols", kCols}});
  Buffers plain = Allocate(workload);
  Buffers moved = Allocate(workload);
  const auto elements = static_cast<size_t>(workload.tensors[0].elements);
  for (size_t i = 0; i < elements; ++i) {
    Data<float>(plain, 0)[i] = static_cast<float>(i % 8'000'009);
    Data<double>(plain, 2)[i] = Data<float>(plain, 0)[i];
  }
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    ASSERT_OK_AND_ASSIGN(const DrawnTransform drawn, DrawnTransform::Draw(problem, workload, seed));
    drawn.ApplyToInput(0, plain[0], moved[0]);
    drawn.ApplyToReference(2, plain[2], moved[2]);
    size_t wrong = 0;
    for (size_t i = 0; i < elements; ++i) {
      wrong +=
          Data<float>(moved, 0)[i] / drawn.scale(0) != Data<double>(moved, 2)[i] / drawn.scale(2);
    }
    EXPECT_EQ(wrong, 0u) << "seed " << seed << " scales " << drawn.scale(0) << " "
                         << drawn.scale(2);
  }
}

TEST(TransformTest, LongDimensionsGoByBlocks) {
  const v1::Problem problem = testing::ScaleRowsProblem();
  for (const int64_t cols : {4097, 5000, 65536, 100003}) {
    CheckAlgebra(problem, {{"rows", 3}, {"cols", cols}}, ScaleRows);
  }
  CheckAlgebra(problem, {{"rows", 5000}, {"cols", 2}}, ScaleRows);
}

constexpr char kGemm[] = R"pb(
  name: "gemm"
  axes { name: "m" }
  axes { name: "n" }
  axes { name: "k" }
  tensors {
    name: "a"
    dtype: F32
    role: INPUT
    shape: "m"
    shape: "k"
    distribution { normal { stddev: 1 } }
  }
  tensors {
    name: "b"
    dtype: BF16
    role: INPUT
    shape: "k"
    shape: "n"
    distribution { normal { stddev: 1 } }
  }
  tensors {
    name: "c"
    dtype: F32
    role: OUTPUT
    shape: "m"
    shape: "n"
    tolerance { kind: SCALED }
  }
  transforms {
    permutation {
      inputs { tensor: "a" dimension: 0 }
      outputs { tensor: "c" dimension: 0 }
    }
  }
  transforms {
    permutation {
      inputs { tensor: "b" dimension: 1 }
      outputs { tensor: "c" dimension: 1 }
    }
  }
  transforms {
    permutation {
      inputs { tensor: "a" dimension: 1 }
      inputs { tensor: "b" dimension: 0 }
    }
  }
  transforms {
    power_of_two_scale {
      inputs { tensor: "a" power: 2 }
      outputs { tensor: "c" power: 2 }
      exponent_max: 3
      signed: true
    }
  }
  transforms {
    power_of_two_scale {
      inputs { tensor: "b" power: -1 }
      outputs { tensor: "c" power: -1 }
      exponent_max: 5
      signed: true
    }
  }
)pb";

TEST(TransformTest, ThreeDimensionsOfAProduct) {
  const auto gemm = [](const ResolvedWorkload& w, Buffers& buffers) {
    const int64_t m = w.axes.at("m"), n = w.axes.at("n"), k = w.axes.at("k");
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t x = 0; x < k; ++x) {
          sum += double{Data<float>(buffers, 0)[i * k + x]} *
                 BF16ToFloat(Data<uint16_t>(buffers, 1)[x * n + j]);
        }
        Data<double>(buffers, 2)[i * n + j] = sum;
      }
    }
  };
  const v1::Problem problem = testing::ProblemFromText(kGemm);
  CheckAlgebra(problem, {{"m", 5}, {"n", 7}, {"k", 11}}, gemm, 1e-9);
  CheckAlgebra(problem, {{"m", 2}, {"n", 5000}, {"k", 3}}, gemm, 1e-9);
}

// q k v attention: b, h, query s and key s permute apart; four dimensions.
TEST(TransformTest, FourDimensions) {
  const v1::Problem problem = testing::ProblemFromText(R"pb(
    name: "mix"
    axes { name: "b" }
    axes { name: "h" }
    axes { name: "s" }
    axes { name: "d" }
    tensors {
      name: "x"
      dtype: F64
      role: INPUT
      shape: "b"
      shape: "h"
      shape: "s"
      shape: "d"
      distribution { normal { stddev: 1 } }
    }
    tensors {
      name: "y"
      dtype: F64
      role: OUTPUT
      shape: "s"
      shape: "b"
      shape: "d"
      shape: "h"
      tolerance { kind: SCALED }
    }
    transforms {
      permutation {
        inputs { tensor: "x" dimension: 0 }
        outputs { tensor: "y" dimension: 1 }
      }
    }
    transforms {
      permutation {
        inputs { tensor: "x" dimension: 1 }
        outputs { tensor: "y" dimension: 3 }
      }
    }
    transforms {
      permutation {
        inputs { tensor: "x" dimension: 2 }
        outputs { tensor: "y" dimension: 0 }
      }
    }
    transforms {
      power_of_two_scale {
        inputs { tensor: "x" power: 1 }
        outputs { tensor: "y" power: 1 }
        exponent_max: 8
        signed: true
      }
    }
  )pb");
  CheckAlgebra(problem, {{"b", 3}, {"h", 4}, {"s", 5}, {"d", 6}},
               [](const ResolvedWorkload& w, Buffers& buffers) {
                 const int64_t B = w.axes.at("b"), H = w.axes.at("h"), S = w.axes.at("s"),
                               D = w.axes.at("d");
                 for (int64_t b = 0; b < B; ++b)
                   for (int64_t h = 0; h < H; ++h)
                     for (int64_t s = 0; s < S; ++s)
                       for (int64_t d = 0; d < D; ++d)
                         Data<double>(buffers, 1)[((s * B + b) * D + d) * H + h] =
                             Data<double>(buffers, 0)[((b * H + h) * S + s) * D + d];
               });
}

TEST(TransformTest, BitwiseOutputsKeepTheirType) {
  const v1::Problem problem = testing::ProblemFromText(R"pb(
    name: "rows"
    axes { name: "m" }
    axes { name: "k" }
    tensors {
      name: "x"
      dtype: I8
      role: INPUT
      shape: "m"
      shape: "k"
      distribution { uniform_int { low: -128 high: 127 } }
    }
    tensors {
      name: "f"
      dtype: F32
      role: INPUT
      shape: "m"
      distribution { normal { stddev: 1 } }
    }
    tensors {
      name: "acc"
      dtype: I32
      role: OUTPUT
      shape: "m"
      tolerance { kind: BITWISE }
    }
    tensors {
      name: "g"
      dtype: F32
      role: OUTPUT
      shape: "m"
      tolerance { kind: BITWISE }
    }
    transforms {
      permutation {
        inputs { tensor: "x" dimension: 0 }
        inputs { tensor: "f" dimension: 0 }
        outputs { tensor: "acc" dimension: 0 }
        outputs { tensor: "g" dimension: 0 }
      }
    }
    transforms { permutation { inputs { tensor: "x" dimension: 1 } } }
    transforms {
      power_of_two_scale {
        inputs { tensor: "f" power: 1 }
        outputs { tensor: "g" power: 1 }
        exponent_max: 4
      }
    }
  )pb");
  const auto kernel = [](const ResolvedWorkload& w, Buffers& b) {
    const int64_t k = w.axes.at("k");
    for (int64_t i = 0; i < w.axes.at("m"); ++i) {
      int32_t sum = 0;
      for (int64_t j = 0; j < k; ++j) sum += Data<int8_t>(b, 0)[i * k + j];
      Data<int32_t>(b, 2)[i] = sum;
      Data<float>(b, 3)[i] = 3.0f * Data<float>(b, 1)[i];
    }
  };
  CheckAlgebra(problem, {{"m", 9}, {"k", 17}}, kernel);
  CheckAlgebra(problem, {{"m", 4500}, {"k", 3}}, kernel);
}

// Every element arrives exactly once, the order is not the old one, and seeds differ.
TEST(TransformTest, PermutationsAreBijections) {
  const v1::Problem problem = testing::ProblemFromText(R"pb(
    name: "v"
    axes { name: "n" }
    tensors {
      name: "x"
      dtype: I32
      role: INPUT
      shape: "n"
      distribution { uniform_int { low: 0 high: 9 } }
    }
    transforms { permutation { inputs { tensor: "x" dimension: 0 } } }
  )pb");
  for (const int64_t n : {1, 2, 3, 100, 4096, 4097, 8191, 1 << 20}) {
    const ResolvedWorkload workload = Resolve(problem, {{"n", n}});
    std::vector<int32_t> from(static_cast<size_t>(n));
    std::iota(from.begin(), from.end(), 0);
    std::vector<std::vector<int32_t>> seen;
    for (const uint64_t seed : {1, 2, 3}) {
      ASSERT_OK_AND_ASSIGN(const DrawnTransform drawn,
                           DrawnTransform::Draw(problem, workload, seed));
      std::vector<int32_t> to(from.size(), -1);
      drawn.ApplyToInput(0, std::as_bytes(std::span(from)), std::as_writable_bytes(std::span(to)));
      std::vector<int32_t> by_shares(from.size(), -1);
      for (const ElementRange& share : Shares(workload.tensors[0], false, 3)) {
        drawn.ApplyToInput(0, std::as_bytes(std::span(from)),
                           std::as_writable_bytes(std::span(by_shares)), share);
      }
      EXPECT_EQ(by_shares, to);
      seen.push_back(to);
      std::sort(to.begin(), to.end());
      ASSERT_EQ(to, from) << n;
    }
    EXPECT_EQ(Resolve(problem, {{"n", n}}).tensors[0].elements, n);
    if (n < 100) continue;
    EXPECT_NE(seen[0], from);
    EXPECT_NE(seen[0], seen[1]);
    EXPECT_NE(seen[1], seen[2]);
  }
}

TEST(TransformTest, ScalesCoverTheirRangeAndSigns) {
  v1::Problem problem = testing::ScaleRowsProblem();
  problem.mutable_transforms()->DeleteSubrange(0, 2);
  const ResolvedWorkload workload = Resolve(problem, {{"rows", 1}, {"cols", 1}});
  std::set<double> scales;
  int identities = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    ASSERT_OK_AND_ASSIGN(const DrawnTransform drawn, DrawnTransform::Draw(problem, workload, seed));
    const float one = 1;
    float scaled = 0;
    drawn.ApplyToInput(0, std::as_bytes(std::span(&one, 1)),
                       std::as_writable_bytes(std::span(&scaled, 1)));
    scales.insert(scaled);
    identities += drawn.is_identity();
    EXPECT_EQ(drawn.is_identity(), scaled == 1);
  }
  EXPECT_EQ(scales.size(), 18u);  // 9 exponents, 2 signs
  EXPECT_EQ(*scales.rbegin(), 16);
  EXPECT_EQ(*scales.begin(), -16);
  EXPECT_GT(identities, 0);
}

TEST(TransformTest, WithoutTransformsItIsTheIdentity) {
  v1::Problem problem = testing::ScaleRowsProblem();
  problem.clear_transforms();
  const ResolvedWorkload workload = Resolve(problem, {{"rows", 4}, {"cols", 8}});
  ASSERT_OK_AND_ASSIGN(const DrawnTransform drawn, DrawnTransform::Draw(problem, workload, 1));
  EXPECT_TRUE(drawn.is_identity());
  std::vector<std::byte> from(128, std::byte{7});
  std::vector<std::byte> to(128);
  drawn.ApplyToInput(0, from, to);
  EXPECT_EQ(from, to);
}

TEST(TransformTest, RefusesDimensionsOfUnequalSize) {
  v1::Problem problem = testing::ScaleRowsProblem();
  problem.mutable_transforms(0)->mutable_permutation()->mutable_inputs(0)->set_dimension(1);
  const ResolvedWorkload workload = Resolve(problem, {{"rows", 4}, {"cols", 8}});
  EXPECT_THAT(DrawnTransform::Draw(problem, workload, 1),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace assay
