// What the runner says of kernels on the emulated device: the emulated driver's library and small
// kernels are real, the reference is a fake guest.
#include <unistd.h>

#include <cmath>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "gmock/gmock.h"
#include "worker/testing/runner_fixture.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

// %r3 is the thread's number in the grid, %d0 x, %d1 y, %d2 x[%r3], %d3 y[%r3].
constexpr char kPrologue[] = R"(
  .reg .pred %p<4>;
  .reg .b32 %r<16>;
  .reg .f32 %f<8>;
  .reg .b64 %d<16>;
  ld.param.u64 %d0, [x];
  ld.param.u64 %d1, [y];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mad.lo.u32 %r3, %r1, %r2, %r0;
  mul.wide.u32 %d4, %r3, 4;
  add.u64 %d2, %d0, %d4;
  add.u64 %d3, %d1, %d4;
)";

std::string Kernel(const std::string& name, const std::string& body) {
  return absl::StrCat(".visible .entry ", name,
                      "(.param .u64 x, .param .u64 y, .param .u64 work)\n{", kPrologue, body,
                      "\n  ret;\n}\n");
}

constexpr char kTriple[] =
    "ld.global.f32 %f0, [%d2]; mul.f32 %f1, %f0, 0f40400000; st.global.f32 [%d3], %f1;";
constexpr char kZero[] = "ld.param.u64 %d5, [work]; mov.u32 %r4, 0; st.global.u32 [%d5], %r4;";
// Each thread takes the next element, so that its own place depends on who comes first.
constexpr char kTicket[] =
    "ld.param.u64 %d5, [work]; atom.global.add.u32 %r4, [%d5], 1; ld.global.f32 %f0, [%d2];"
    "mul.f32 %f1, %f0, 0f40400000; mul.wide.u32 %d6, %r4, 4; add.u64 %d6, %d1, %d6;"
    "st.global.f32 [%d6], %f1;";
// The sum of x, added up in the order in which threads come.
constexpr char kSum[] =
    "ld.param.u64 %d5, [work]; ld.global.f32 %f0, [%d2]; red.global.add.f32 [%d5], %f0;";
constexpr char kSpread[] =
    "ld.param.u64 %d5, [work]; ld.global.f32 %f0, [%d5]; st.global.f32 [%d3], %f0;";
// 3 = 2^2 - 1, exactly.
constexpr char kApproximate[] =
    "ld.global.f32 %f0, [%d2]; mov.f32 %f2, 0f40000000; ex2.approx.f32 %f2, %f2;"
    "sub.f32 %f2, %f2, 0f3f800000; mul.f32 %f1, %f0, %f2; st.global.f32 [%d3], %f1;";

class EmulatedRunnerTest : public RunnerTest {
 protected:
  void SetUp() override {
    RunnerTest::SetUp();
    const char* bin = std::getenv("ASSAY_BIN_DIR");
    internal::v1::DeviceTarget& device = *request_.mutable_device();
    device.set_driver(absl::StrCat(bin == nullptr ? "bin" : bin, "/libassay_emulated_cuda.so"));
    ASSERT_EQ(access(device.driver().c_str(), R_OK), 0) << device.driver();
    device.set_arch(80);
    v1::Workspace& workspace = *device.mutable_candidate()->mutable_plan()->add_workspaces();
    workspace.set_name("work");
    workspace.set_bytes("4");
  }

  // Launches `name` with `threads` threads in one block.
  void Launch(const std::string& name, int threads, const std::string& body) {
    v1::Launch& launch =
        *request_.mutable_device()->mutable_candidate()->mutable_plan()->add_launches();
    launch.set_kernel(name);
    launch.add_grid("1");
    launch.add_block(absl::StrCat(threads));
    for (const char* argument : {"x", "y", "work"}) launch.add_args(argument);
    ptx_ += Kernel(name, body);
  }

  RunnerReport RunDevice(FakeGuestPlan reference = TripleReference()) {
    const std::string path = folder_->path() + "/kernel.ptx";
    EXPECT_OK(WriteFileAtomically(
        path, absl::StrCat(".version 8.0\n.target sm_80\n.address_size 64\n", ptx_)));
    request_.set_candidate_artifact(path);
    const RunnerReport report = Run(FakeGuestPlan(), std::move(reference));
    EXPECT_FALSE(report.has_error()) << report.DebugString();
    EXPECT_FALSE(report.has_candidate_fault()) << report.DebugString();
    EXPECT_EQ(report.workloads_size(), 1) << report.DebugString();
    return report;
  }

  // Small integers, so that their products are exact.
  void DrawIntegers() {
    v1::Tensor& x = *request_.mutable_problem()->mutable_tensors(0);
    x.set_scalable(false);
    x.mutable_distribution()->mutable_uniform_int()->set_low(1);
    x.mutable_distribution()->mutable_uniform_int()->set_high(100);
  }

  std::string ptx_;
};

TEST_F(EmulatedRunnerTest, CountsOfTheFirstCallAreReported) {
  AddWork("main", 64, true, false);
  Launch("triple", 64, kTriple);
  const RunnerReport report = RunDevice();
  const RunnerWorkloadReport& work = report.workloads(0);
  EXPECT_TRUE(work.verification().passed()) << report.DebugString();
  // x1 in three orders, the others in one each.
  EXPECT_EQ(work.verification().checked_call_count(), 13);
  const v1::ObservedWork& observed = work.observed();
  EXPECT_EQ(observed.launches(), 1);
  EXPECT_EQ(observed.f32_flops(), 64);
  EXPECT_EQ(observed.tensor_flops(), 0);
  EXPECT_EQ(observed.special_operations(), 0);
  EXPECT_EQ(observed.integer_operations(), 64 * 4);  // all of addresses
  EXPECT_EQ(observed.global_load_bytes(), 64 * 4);
  EXPECT_EQ(observed.global_store_bytes(), 64 * 4);
  EXPECT_EQ(observed.global_sectors(), 2 * 2 * 4);
  EXPECT_EQ(observed.global_sectors_least(), 2 * 2 * 4);
  EXPECT_EQ(observed.warp_instructions(), 2 * (9 + 3 + 1));
  EXPECT_EQ(observed.thread_instructions(), 64 * (9 + 3 + 1));
  EXPECT_EQ(observed.branches(), 0);
  EXPECT_EQ(observed.barriers(), 0);
  EXPECT_FALSE(work.has_order_dependence()) << report.DebugString();
  EXPECT_FALSE(work.has_approximation_dependence()) << report.DebugString();
}

TEST_F(EmulatedRunnerTest, AnOutputThatIsRightInOneOrderOnlyIsNondeterministic) {
  AddWork("main", 64, true, false);
  Launch("zero", 1, kZero);
  Launch("ticket", 64, kTicket);
  const RunnerReport report = RunDevice();
  const RunnerWorkloadReport& work = report.workloads(0);
  EXPECT_FALSE(work.verification().passed());
  EXPECT_EQ(work.reason(), "MISMATCH");
  EXPECT_TRUE(work.nondeterministic());
  ASSERT_TRUE(work.has_order_dependence()) << report.DebugString();
  const internal::v1::OrderDependence& found = work.order_dependence();
  EXPECT_TRUE(found.wrong());
  EXPECT_TRUE(found.replayable());
  EXPECT_EQ(found.input_case(), "x1");
  EXPECT_EQ(found.tensor(), "y");
  EXPECT_EQ(found.first_order(), 0u);
  EXPECT_NE(found.other_order(), 0u);
  ASSERT_EQ(found.index_size(), 1);
  // The natural order is the right one.
  EXPECT_NE(found.first_value(), found.other_value());
  EXPECT_EQ(found.other_value(), work.verification().first_mismatch().got());
  EXPECT_EQ(found.index(0), work.verification().first_mismatch().index(0));
}

// With blocks on several cores even the natural order may be wrong at every try.
TEST_F(EmulatedRunnerTest, BlocksThatRaceForTheirPlaceAreNondeterministic) {
  AddWork("main", 4096, true, false);
  Launch("zero", 1, kZero);
  Launch("ticket", 64, kTicket);
  internal::v1::DeviceTarget& device = *request_.mutable_device();
  device.mutable_candidate()->mutable_plan()->mutable_launches(1)->set_grid(0, "64");
  const RunnerReport report = RunDevice();
  EXPECT_TRUE(report.workloads(0).nondeterministic()) << report.DebugString();
  ASSERT_TRUE(report.workloads(0).has_order_dependence()) << report.DebugString();
  EXPECT_TRUE(report.workloads(0).order_dependence().wrong());
  EXPECT_TRUE(report.workloads(0).order_dependence().replayable());
}

TEST_F(EmulatedRunnerTest, SumsThatRoundDifferentlyAreNoFault) {
  request_.mutable_problem()->mutable_tensors(1)->mutable_tolerance()->set_element_max(1e-4);
  request_.mutable_problem()->mutable_tensors(1)->mutable_tolerance()->set_relative_l2_max(1e-4);
  request_.mutable_problem()->clear_transforms();
  // Far from zero, so that nothing cancels.
  v1::Tensor& x = *request_.mutable_problem()->mutable_tensors(0);
  x.mutable_distribution()->mutable_uniform()->set_low(1);
  x.mutable_distribution()->mutable_uniform()->set_high(2);
  AddWork("main", 256, true, false);
  Launch("zero", 1, kZero);
  Launch("sum", 256, kSum);
  Launch("spread", 256, kSpread);
  FakeGuestPlan reference;
  reference.compute = [](int call, const Tensors& t, const std::vector<int64_t>& axes) {
    double sum = 0;
    for (int64_t i = 0; i < axes[0]; ++i) sum += Floats(t[0])[i];
    for (int64_t i = 0; i < axes[0]; ++i) reinterpret_cast<double*>(t[1].data())[i] = sum;
  };
  const RunnerReport report = RunDevice(reference);
  const RunnerWorkloadReport& work = report.workloads(0);
  EXPECT_TRUE(work.verification().passed()) << report.DebugString();
  EXPECT_FALSE(work.nondeterministic());
  ASSERT_TRUE(work.has_order_dependence()) << report.DebugString();
  EXPECT_FALSE(work.order_dependence().wrong());
  EXPECT_TRUE(work.order_dependence().replayable());
  EXPECT_EQ(work.order_dependence().differing_count(), 256);
  EXPECT_NEAR(work.order_dependence().first_value(), work.order_dependence().other_value(), 1e-2);
  EXPECT_EQ(work.observed().launches(), 3);
  EXPECT_EQ(work.observed().atomic_operations(), 256);
}

// Sums of small integers are exact in any order.
TEST_F(EmulatedRunnerTest, AtomicSumsOfIntegersDependOnNothing) {
  DrawIntegers();
  request_.mutable_problem()->clear_transforms();
  AddWork("main", 256, true, false);
  Launch("zero", 1, kZero);
  Launch("sum", 256, kSum);
  Launch("spread", 256, kSpread);
  FakeGuestPlan reference;
  reference.compute = [](int call, const Tensors& t, const std::vector<int64_t>& axes) {
    double sum = 0;
    for (int64_t i = 0; i < axes[0]; ++i) sum += Floats(t[0])[i];
    for (int64_t i = 0; i < axes[0]; ++i) reinterpret_cast<double*>(t[1].data())[i] = sum;
  };
  const RunnerReport report = RunDevice(reference);
  EXPECT_TRUE(report.workloads(0).verification().passed()) << report.DebugString();
  EXPECT_FALSE(report.workloads(0).has_order_dependence()) << report.DebugString();
}

TEST_F(EmulatedRunnerTest, DependenceOnUndocumentedAccuracyIsNoted) {
  DrawIntegers();
  AddWork("main", 64, true, false);
  Launch("triple", 64, kApproximate);
  // The bound of ex2.approx is 2 units in the last place of 4, 3e-7 of the output.
  v1::TolerancePolicy& tolerance =
      *request_.mutable_problem()->mutable_tensors(1)->mutable_tolerance();
  tolerance.set_element_max(1e-9);
  tolerance.set_relative_l2_max(1e-9);
  RunnerReport report = RunDevice();
  const RunnerWorkloadReport& work = report.workloads(0);
  EXPECT_TRUE(work.verification().passed()) << report.DebugString();
  EXPECT_EQ(work.observed().special_operations(), 64);
  ASSERT_TRUE(work.has_approximation_dependence()) << report.DebugString();
  EXPECT_EQ(work.approximation_dependence().reason(), "MISMATCH");
  EXPECT_EQ(work.approximation_dependence().input_case(), "x1");
  EXPECT_EQ(work.approximation_dependence().mismatch().tensor(), "y");
  EXPECT_FALSE(work.has_order_dependence());

  tolerance.set_element_max(1e-6);
  tolerance.set_relative_l2_max(1e-6);
  report = RunDevice();
  EXPECT_FALSE(report.workloads(0).has_approximation_dependence()) << report.DebugString();
}

}  // namespace
}  // namespace assay
