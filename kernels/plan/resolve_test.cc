#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "assay/v1/candidate.pb.h"
#include "base/status.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "kernels/plan/plan.h"

namespace assay {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::CandidateSpec Spec(const std::string& plan) {
  v1::CandidateSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      absl::StrCat("language: CUDA_CPP plan { ", plan, " }"), &spec))
      << plan;
  return spec;
}

// a f32[n] in, c f32[n] out.
ResolvedWorkload Workload(int64_t n, int64_t m = 1) {
  ResolvedWorkload workload;
  workload.axes = {{"n", n}, {"m", m}};
  workload.axis_values = {n, m};
  for (const char* name : {"a", "c"}) {
    TensorShape tensor;
    tensor.name = name;
    tensor.is_output = name[0] == 'c';
    tensor.dims = {n};
    tensor.elements = n;
    tensor.bytes = 4 * n;
    workload.tensors.push_back(tensor);
  }
  return workload;
}

KernelSignature Kernel() {
  KernelSignature kernel;
  kernel.name = "k";
  kernel.parameters = {{"k_param_0", "u64", 8, false},
                       {"k_param_1", "u64", 8, false},
                       {"k_param_2", "u32", 4, false}};
  kernel.static_shared_bytes = 1024;
  return kernel;
}

constexpr char kArgs[] = R"text(args: "a" args: "c" args: "n")text";

absl::StatusOr<ResolvedPlan> Resolve(const std::string& plan, int64_t n = 1000, int64_t m = 1,
                                     const KernelSignature& kernel = Kernel(),
                                     const PlanLimits& limits = {}) {
  return ResolvePlan(Spec(plan), Workload(n, m), {{"BLOCK", 128}}, limits, {kernel});
}

std::string Launch(const std::string& fields) {
  return absl::StrCat("launches { kernel: \"k\" ", fields, " }");
}

TEST(ResolvePlanTest, PutsNumbersIntoEveryField) {
  ASSERT_OK_AND_ASSIGN(const ResolvedPlan plan,
                       Resolve(R"text(workspaces { name: "w" bytes: "4 * ceil_div(n, BLOCK)" }
                 workspaces { name: "none" bytes: "0" }
                 launches { kernel: "k" grid: "ceil_div(n, BLOCK)" block: "BLOCK"
                            shared_bytes: "4 * BLOCK" args: "a" args: "w" args: "n" }
                 launches { kernel: "k" grid: "2" grid: "3" grid: "4" block: "8" block: "4"
                            block: "2" args: "none" args: "c" args: "-n + m" })text"));
  ASSERT_EQ(plan.workspaces.size(), 2u);
  EXPECT_EQ(plan.workspaces[0].name, "w");
  EXPECT_EQ(plan.workspaces[0].bytes, 32);
  EXPECT_EQ(plan.workspaces[1].bytes, 0);
  ASSERT_EQ(plan.launches.size(), 2u);
  const ResolvedLaunch& first = plan.launches[0];
  EXPECT_EQ(first.kernel, "k");
  EXPECT_THAT(first.grid, ElementsAre(8, 1, 1));
  EXPECT_THAT(first.block, ElementsAre(128, 1, 1));
  EXPECT_EQ(first.shared_bytes, 512);
  ASSERT_EQ(first.arguments.size(), 3u);
  EXPECT_EQ(first.arguments[0].kind, PlanArgument::Kind::kTensor);
  EXPECT_EQ(first.arguments[0].index, 0);
  EXPECT_EQ(first.arguments[1].kind, PlanArgument::Kind::kWorkspace);
  EXPECT_EQ(first.arguments[1].index, 0);
  EXPECT_EQ(first.arguments[2].kind, PlanArgument::Kind::kInteger);
  EXPECT_EQ(first.arguments[2].bits, 1000u);
  EXPECT_EQ(first.arguments[2].bytes, 4);
  const ResolvedLaunch& second = plan.launches[1];
  EXPECT_THAT(second.grid, ElementsAre(2, 3, 4));
  EXPECT_THAT(second.block, ElementsAre(8, 4, 2));
  EXPECT_EQ(second.shared_bytes, 0);
  EXPECT_EQ(second.arguments[0].index, 1);
  EXPECT_EQ(second.arguments[2].bits, 0xffff'fc19u) << "-999 in 32 bits";
}

TEST(ResolvePlanTest, RefusalsNamePlaceExpressionAndValue) {
  struct Case {
    std::string plan;
    const char* reason;
    const char* text;
  };
  const std::string one = R"text(grid: "1" block: "1" )text";
  const std::string args = kArgs;
  const Case cases[] = {
      {"", "PLAN_INVALID", "launches: 0"},
      {Launch(R"text(block: "1" )text" + args), "PLAN_INVALID", "launches[0].grid: 0 extents"},
      {Launch(R"text(grid: "1" grid: "1" grid: "1" grid: "1" block: "1" )text" + args),
       "PLAN_INVALID", "launches[0].grid: 4 extents"},
      {Launch(R"text(grid: "n - 1000" block: "1" )text" + args), "PLAN_INVALID",
       "launches[0].grid.x: 'n - 1000' is 0; it must be 1 or more"},
      {Launch(R"text(grid: "1" grid: "-n" block: "1" )text" + args), "PLAN_INVALID",
       "launches[0].grid.y: '-n' is -1000"},
      {Launch(R"text(grid: "n * 4611686018427387904" block: "1" )text" + args), "PLAN_INVALID",
       "launches[0].grid.x: "},
      {Launch(R"text(grid: "n / (m - 1)" block: "1" )text" + args), "PLAN_INVALID",
       "must not be 0"},
      {Launch(R"text(grid: "ceil_div(n, m - 1)" block: "1" )text" + args), "PLAN_INVALID",
       "must be positive"},
      {Launch(R"text(grid: "n +" block: "1" )text" + args), "PLAN_INVALID", "column"},
      {Launch(R"text(grid: "rows" block: "1" )text" + args), "PLAN_INVALID",
       "'rows', which is no axis or parameter"},
      {Launch(one + R"text(args: "a" args: "c" args: "a + 1")text"), "PLAN_INVALID",
       "launches[0].args[2]: 'a + 1' uses 'a', which is a buffer"},
      {Launch(R"text(grid: "2147483648" block: "1" )text" + args), "PLAN_OVER_LIMIT",
       "launches[0].grid.x: '2147483648' is 2147483648; the device takes at most 2147483647"},
      {Launch(R"text(grid: "1" grid: "65536" block: "1" )text" + args), "PLAN_OVER_LIMIT",
       "launches[0].grid.y"},
      {Launch(R"text(grid: "1" grid: "1" grid: "65536" block: "1" )text" + args), "PLAN_OVER_LIMIT",
       "launches[0].grid.z"},
      {Launch(R"text(grid: "1" block: "1025" )text" + args), "PLAN_OVER_LIMIT",
       "launches[0].block.x: '1025' is 1025; the device takes at most 1024"},
      {Launch(R"text(grid: "1" block: "1" block: "1" block: "65" )text" + args), "PLAN_OVER_LIMIT",
       "launches[0].block.z"},
      {Launch(R"text(grid: "1" block: "64" block: "32" )text" + args), "PLAN_OVER_LIMIT",
       "launches[0].block: 64 x 32 x 1 is 2048 threads"},
      {Launch(one + R"text(shared_bytes: "-1" )text" + args), "PLAN_INVALID",
       "launches[0].shared_bytes: '-1' is -1"},
      {Launch(one + R"text(shared_bytes: "48 * 1024 - 1023" )text" + args), "PLAN_OVER_LIMIT",
       "'48 * 1024 - 1023' is 48129 beside 1024 static bytes"},
      {Launch(one + args) + R"text( workspaces { name: "w" bytes: "-4" })text", "PLAN_INVALID",
       "workspace 'w'.bytes: '-4' is -4"},
      {Launch(one + args) + R"text( workspaces { name: "w" bytes: "4294967297" })text",
       "PLAN_OVER_LIMIT", "4294967297"},
      {Launch(one + args) + R"text( workspaces { name: "v" bytes: "4294967040" }
                                workspaces { name: "w" bytes: "257" })text",
       "PLAN_OVER_LIMIT", "workspace 'w'.bytes: '257' is 257"},
      {Launch(one + args) + R"text( launches { kernel: "other" grid: "1" block: "1" })text",
       "KERNEL_NOT_FOUND",
       "launches[1].kernel: the candidate has no entry point 'other'; it has 'k'"},
      {Launch(one + R"text(args: "a" args: "c")text"), "PLAN_ARGUMENT_MISMATCH",
       "launches[0].args: 2 arguments, but 'k' has 3 parameters: .u64 k_param_0"},
      {Launch(one + args + R"text( args: "1")text"), "PLAN_ARGUMENT_MISMATCH", "4 arguments"},
      {Launch(one + R"text(args: "a" args: "c" args: "a")text"), "PLAN_ARGUMENT_MISMATCH",
       "launches[0].args[2]: 'a' is a buffer, but parameter 'k_param_2' is .u32 of 4 bytes"},
      {Launch(one + R"text(args: "a" args: "c" args: "4294967296")text"), "PLAN_ARGUMENT_MISMATCH",
       "launches[0].args[2]: '4294967296' is 4294967296, but parameter 'k_param_2' is .u32 and "
       "holds -2147483648 to 4294967295"},
      {Launch(one + R"text(args: "a" args: "c" args: "-2147483649")text"), "PLAN_ARGUMENT_MISMATCH",
       "-2147483649"},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.plan);
    const absl::Status status = Resolve(test.plan).status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(test.text)));
    EXPECT_EQ(GetReason(status), test.reason) << status;
  }
}

TEST(ResolvePlanTest, TheLastAdmissibleValuesPass) {
  for (const char* fields :
       {R"text(grid: "2147483647" grid: "65535" grid: "65535" block: "1024")text",
        R"text(grid: "1" block: "1" block: "1" block: "64" shared_bytes: "48 * 1024 - 1024")text",
        R"text(grid: "1" block: "16" block: "16" block: "4")text"}) {
    SCOPED_TRACE(fields);
    EXPECT_OK(Resolve(Launch(absl::StrCat(fields, " ", kArgs))));
  }
  EXPECT_OK(Resolve(Launch(absl::StrCat(R"text(grid: "1" block: "1" )text", kArgs)) +
                    R"text( workspaces { name: "v" bytes: "4294967040" }
                        workspaces { name: "w" bytes: "256" })text"));
}

TEST(ResolvePlanTest, IntegersHaveTheWidthThatTheKernelDeclares) {
  struct Case {
    const char* type;
    int64_t bytes;
    int64_t low;   // the least that fits
    int64_t high;  // the greatest
  };
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  const Case cases[] = {{"u8", 1, -128, 255},
                        {"s8", 1, -128, 127},
                        {"u16", 2, -32768, 65535},
                        {"s16", 2, -32768, 32767},
                        {"b32", 4, -2147483648, 4294967295},
                        {"s32", 4, -2147483648, 2147483647},
                        {"u64", 8, kMin + 1, kMax},
                        {"s64", 8, kMin + 1, kMax}};
  for (const Case& test : cases) {
    SCOPED_TRACE(test.type);
    KernelSignature kernel;
    kernel.name = "k";
    kernel.parameters = {{"p", test.type, test.bytes, false}};
    for (const int64_t value : {test.low, test.high, int64_t{0}}) {
      SCOPED_TRACE(value);
      const auto plan =
          Resolve(Launch(absl::StrCat(R"text(grid: "1" block: "1" args: ")text", value, "\"")), 1,
                  1, kernel);
      ASSERT_OK(plan);
      const PlanArgument& argument = plan->launches[0].arguments[0];
      EXPECT_EQ(argument.bytes, test.bytes);
      const uint64_t mask = test.bytes == 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * test.bytes)) - 1;
      EXPECT_EQ(argument.bits, static_cast<uint64_t>(value) & mask);
    }
    if (test.bytes == 8) continue;
    for (const int64_t value : {test.low - 1, test.high + 1}) {
      SCOPED_TRACE(value);
      const absl::Status status =
          Resolve(Launch(absl::StrCat(R"text(grid: "1" block: "1" args: ")text", value, "\"")), 1,
                  1, kernel)
              .status();
      EXPECT_EQ(GetReason(status), "PLAN_ARGUMENT_MISMATCH") << status;
    }
  }
}

TEST(ResolvePlanTest, WhatAPlanCannotPassIsRefused) {
  struct Case {
    KernelParameter parameter;
    const char* argument;
    const char* text;
  };
  const Case cases[] = {
      {{"eps", "f32", 4, false}, "1", "parameter 'eps' is .f32 of 4 bytes; a plan passes buffers"},
      {{"eps", "f64", 8, false}, "a", "'a' is a buffer"},
      {{"s", "b8", 16, false}, "1", "'s' is .b8 of 16 bytes"},
      {{"s", "b8", 16, false}, "a", "'s' is .b8 of 16 bytes"},
      {{"p", "u64", 8, true}, "n", "'n' is no tensor or workspace, but parameter 'p' is a pointer"},
      {{"h", "f16", 2, false}, "0", ".f16"},
      {{"q", "pred", 1, false}, "0", ".pred"},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.text);
    KernelSignature kernel;
    kernel.name = "k";
    kernel.parameters = {test.parameter};
    const absl::Status status =
        Resolve(
            Launch(absl::StrCat(R"text(grid: "1" block: "1" args: ")text", test.argument, "\"")), 1,
            1, kernel)
            .status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(test.text)));
    EXPECT_EQ(GetReason(status), "PLAN_ARGUMENT_MISMATCH");
  }
}

TEST(ResolvePlanTest, WhatTheKernelDeclaresBindsTheBlock) {
  const std::string plan =
      Launch(absl::StrCat(R"text(grid: "1" block: "32" block: "4" )text", kArgs));
  KernelSignature kernel = Kernel();
  kernel.block_threads_max = 128;
  EXPECT_OK(Resolve(plan, 1, 1, kernel));
  kernel.block_threads_max = 127;
  EXPECT_THAT(Resolve(plan, 1, 1, kernel),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("at most 127"), HasSubstr("__launch_bounds__"))));
  kernel = Kernel();
  kernel.required_block = {32, 4, 0};
  EXPECT_OK(Resolve(plan, 1, 1, kernel));
  kernel.required_block = {32, 8, 1};
  EXPECT_THAT(Resolve(plan, 1, 1, kernel),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("launches[0].block.y: is 4; 'k' requires 8")));
  PlanLimits small;
  small.block_threads_max = 64;
  EXPECT_THAT(Resolve(plan, 1, 1, Kernel(), small),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("at most 64")));
}

TEST(ResolvePlanTest, AParameterMayNotHideAnAxis) {
  const absl::Status status =
      ResolvePlan(Spec(Launch(absl::StrCat(R"text(grid: "1" block: "1" )text", kArgs))),
                  Workload(4), {{"n", 1}}, {}, {Kernel()})
          .status();
  EXPECT_EQ(GetReason(status), "PLAN_INVALID") << status;
}

}  // namespace
}  // namespace assay
