#include <string>

#include "assay/v1/evaluation.pb.h"
#include "assay/v1/problem.pb.h"
#include "base/limits.h"
#include "base/test_matchers.h"
#include "gtest/gtest.h"
#include "kernels/problem.h"
#include "kernels/testing/problems.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ScaleRowsProblem;

v1::Workload Axes(std::map<std::string, int64_t> axes) {
  v1::Workload out;
  out.mutable_axes()->insert(axes.begin(), axes.end());
  return out;
}

TEST(WorkloadTest, ResolvesShapesInArgumentOrder) {
  const v1::Problem problem = ScaleRowsProblem();
  ASSERT_OK_AND_ASSIGN(const ResolvedWorkload got, ResolveWorkload(problem, problem.workloads(1)));
  EXPECT_EQ(got.name, "ragged");
  EXPECT_TRUE(got.verify_only);
  EXPECT_THAT(got.axis_values, ElementsAre(7, 13));
  ASSERT_EQ(got.tensors.size(), 3u);
  EXPECT_EQ(got.tensors[0].name, "x");
  EXPECT_EQ(got.tensors[1].name, "s");
  EXPECT_EQ(got.tensors[2].name, "y");
  EXPECT_THAT(got.tensors[0].dims, ElementsAre(7, 13));
  EXPECT_EQ(got.tensors[0].elements, 91);
  EXPECT_EQ(got.tensors[0].bytes, 364);
  EXPECT_EQ(got.tensors[0].reference_element_bytes, 0);
  EXPECT_TRUE(got.tensors[2].is_output);
  EXPECT_EQ(got.tensors[2].reference_element_bytes, 8);
}

TEST(WorkloadTest, RefusesBadAxes) {
  const v1::Problem problem = ScaleRowsProblem();
  const struct {
    std::map<std::string, int64_t> axes;
    const char* message;
  } cases[] = {
      {{{"rows", 4}}, "axis 'cols' has no value"},
      {{{"rows", 4}, {"cols", 8}, {"depth", 1}}, "no axis 'depth'"},
      {{{"rows", 0}, {"cols", 8}}, "[1, 2147483647]"},
      {{{"rows", -1}, {"cols", 8}}, "[1, 2147483647]"},
      {{{"rows", 4}, {"cols", 1048577}}, "[1, 1048576]"},
      {{{"rows", 1048576}, {"cols", 1048576}}, "constraint"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(ResolveWorkload(problem, Axes(c.axes)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.message)));
  }
}

TEST(WorkloadTest, SizeLimitsAreSharpAndDoNotOverflow) {
  v1::Problem problem = testing::ProblemFromText(R"pb(
    name: "big"
    axes { name: "n" max: 9223372036854775807 }
    tensors { name: "a" dtype: I8 role: INPUT shape: "n" }
    tensors { name: "b" dtype: U8 role: INPUT shape: "n" }
    tensors {
      name: "y"
      dtype: I8
      role: OUTPUT
      shape: "1"
      tolerance { kind: BITWISE }
    }
  )pb");
  EXPECT_THAT(ResolveWorkload(problem, Axes({{"n", limits::kTensorBytesMax}})),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("tensors take 8589934593")));
  EXPECT_OK(ResolveWorkload(problem, Axes({{"n", limits::kTensorBytesMax - 1}})));
  EXPECT_THAT(ResolveWorkload(problem, Axes({{"n", limits::kTensorBytesMax + 1}})),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("tensor 'a'")));

  problem.mutable_tensors(0)->add_shape("n");
  problem.mutable_tensors(0)->set_dtype(v1::F64);
  for (const int64_t n : {int64_t{1} << 31, int64_t{1} << 32, int64_t{1} << 62,
                          std::numeric_limits<int64_t>::max()}) {
    EXPECT_THAT(ResolveWorkload(problem, Axes({{"n", n}})),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << n;
  }
  problem.mutable_tensors(1)->set_shape(0, "n - 2");
  EXPECT_THAT(ResolveWorkload(problem, Axes({{"n", 2}})),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("must be positive")));
}

TEST(WorkloadTest, Selectors) {
  const v1::Problem problem = ScaleRowsProblem();
  v1::WorkloadSelector selector;
  ASSERT_OK(ParseWorkloadSelector("small", &selector));
  ASSERT_OK_AND_ASSIGN(ResolvedWorkload got, ResolveSelector(problem, selector));
  EXPECT_THAT(got.axis_values, ElementsAre(4, 8));

  ASSERT_OK(ParseWorkloadSelector("cols=65536,rows=64", &selector));
  ASSERT_OK_AND_ASSIGN(got, ResolveSelector(problem, selector));
  EXPECT_EQ(got.name, "rows=64,cols=65536");
  EXPECT_FALSE(got.verify_only);

  ASSERT_OK(ParseWorkloadSelector("huge", &selector));
  EXPECT_THAT(ResolveSelector(problem, selector), HasReason("WORKLOAD_NOT_FOUND"));
  EXPECT_THAT(ResolveSelector(problem, selector),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("small, ragged")));
  selector.mutable_axes()->insert({"rows", 1});
  EXPECT_THAT(ResolveSelector(problem, selector), StatusIs(absl::StatusCode::kInvalidArgument));

  for (const char* bad : {"", "a b", "rows=", "rows=4,", "=4", "rows=4,rows=5", "rows=4x",
                          "rows=99999999999999999999", "rows==4", ",rows=4", "../x"}) {
    EXPECT_THAT(ParseWorkloadSelector(bad, &selector), StatusIs(absl::StatusCode::kInvalidArgument))
        << bad;
  }
}

TEST(WorkCostTest, DefaultsToEveryTensorOnce) {
  v1::Problem problem = ScaleRowsProblem();
  ASSERT_OK_AND_ASSIGN(const ResolvedWorkload workload,
                       ResolveWorkload(problem, problem.workloads(0)));
  ASSERT_OK_AND_ASSIGN(WorkCost cost, ComputeWorkCost(problem, workload));
  EXPECT_EQ(cost.unit, v1::WorkModel::FLOP_F32);
  EXPECT_EQ(cost.operations, 32);
  EXPECT_EQ(cost.bytes_read, 4 * 32 + 4 * 4);
  EXPECT_EQ(cost.bytes_written, 4 * 32);
  EXPECT_EQ(cost.footprint_bytes, 4 * 32 + 4 * 4 + 4 * 32);

  problem.mutable_work()->set_bytes_read("8 * rows");
  problem.mutable_work()->set_bytes_written("0");
  ASSERT_OK_AND_ASSIGN(cost, ComputeWorkCost(problem, workload));
  EXPECT_EQ(cost.bytes_read, 32);
  EXPECT_EQ(cost.bytes_written, 0);

  problem.mutable_work()->set_operations("rows - cols");
  EXPECT_THAT(ComputeWorkCost(problem, workload), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(DataTypeTest, SizesAndCppTypes) {
  const struct {
    DataType dtype;
    size_t size;
    const char* cpp;
  } cases[] = {{DataType::kF32, 4, "float"},    {DataType::kF64, 8, "double"},
               {DataType::kI8, 1, "int8_t"},    {DataType::kU8, 1, "uint8_t"},
               {DataType::kI32, 4, "int32_t"},  {DataType::kF16, 2, "uint16_t"},
               {DataType::kBF16, 2, "uint16_t"}};
  for (const auto& c : cases) {
    EXPECT_EQ(DataTypeSize(c.dtype), c.size);
    EXPECT_EQ(DataTypeCpp(c.dtype), c.cpp);
  }
}

}  // namespace
}  // namespace assay
