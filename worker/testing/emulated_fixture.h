// Small kernels in PTX on the emulated device, for the problem "triple" through the runner's one
// entry: the emulated driver's library is real, the reference is a fake guest. Only for tests.
#ifndef ASSAY_WORKER_TESTING_EMULATED_FIXTURE_H_
#define ASSAY_WORKER_TESTING_EMULATED_FIXTURE_H_

#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "gtest/gtest.h"
#include "worker/testing/runner_fixture.h"

namespace assay {

// %r3 is the thread's number in the grid, %d0 x, %d1 y, %d2 x[%r3], %d3 y[%r3].
inline constexpr char kPrologue[] = R"(
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

inline std::string Kernel(const std::string& name, const std::string& body) {
  return absl::StrCat(".visible .entry ", name,
                      "(.param .u64 x, .param .u64 y, .param .u64 work)\n{", kPrologue, body,
                      "\n  ret;\n}\n");
}

inline constexpr char kTriple[] =
    "ld.global.f32 %f0, [%d2]; mul.f32 %f1, %f0, 0f40400000; st.global.f32 [%d3], %f1;";
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
    launch.add_grid(absl::StrCat(1));  // g++ 12 warns of the literal
    launch.add_block(absl::StrCat(threads));
    for (const char* argument : {"x", "y", "work"}) launch.add_args(argument);
    ptx_ += Kernel(name, body);
  }

  // Module-scope variables, before all kernels.
  void Declare(const std::string& declarations) { ptx_ = absl::StrCat(declarations, ptx_); }

  RunnerReport RunAnyhow(FakeGuestPlan reference = TripleReference()) {
    const std::string path = folder_->path() + "/kernel.ptx";
    EXPECT_OK(WriteFileAtomically(
        path, absl::StrCat(".version 8.0\n.target sm_80\n.address_size 64\n", ptx_)));
    request_.set_candidate_artifact(path);
    RunnerReport report = Run(FakeGuestPlan(), std::move(reference));
    EXPECT_FALSE(report.has_error()) << report.DebugString();
    return report;
  }

  RunnerReport RunDevice(FakeGuestPlan reference = TripleReference()) {
    const RunnerReport report = RunAnyhow(std::move(reference));
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

}  // namespace assay

#endif  // ASSAY_WORKER_TESTING_EMULATED_FIXTURE_H_
