// Sessions on the emulated driver: what ends one.
#include "worker/backend/cuda/emulated_session.h"

#include <fcntl.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "assay/internal/v1/runner.pb.h"
#include "assay/v1/candidate.pb.h"
#include "assay/v1/problem.pb.h"
#include "base/file.h"
#include "base/status.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/problem.h"
#include "worker/testing/cuda_fixture.h"
#include "worker/testing/fake_guest.h"

namespace assay {
namespace {

using internal::v1::GuestFault;
using ::testing::HasSubstr;

// A call of y = 3 x whose launches may take so much CPU time; how it ended, if early.
absl::StatusOr<std::optional<GuestEnd>> EndOfACall(absl::Duration call_cpu_max) {
  ResetFakeCuda();  // which is on the same driver
  const char* const bin = std::getenv("ASSAY_BIN_DIR");
  ASSAY_ASSIGN_OR_RETURN(
      const std::unique_ptr<CudaDriver> driver,
      CudaDriver::Load(absl::StrCat(bin == nullptr ? "bin" : bin, "/libassay_emulated_cuda.so")));
  ASSAY_ASSIGN_OR_RETURN(const TemporaryDirectory folder,
                         TemporaryDirectory::Create("emulated-session"));
  const std::string path = folder.path() + "/candidate.ptx";
  ASSAY_RETURN_IF_ERROR(WriteFileAtomically(
      path, TriplePtx("  mul.f32 %v, %v, 0f40400000;\n  st.global.f32 [%y], %v;")));
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  v1::Problem problem;
  MakeTripleProblem(false, &problem);
  v1::CandidateSpec spec;
  FillTripleSpec(&spec);
  v1::Workload workload;
  workload.set_name("w");
  (*workload.mutable_axes())["n"] = 64;
  DeviceSessionOptions options;
  options.candidate = &spec;
  ASSAY_ASSIGN_OR_RETURN(options.workload, ResolveWorkload(problem, workload));
  EmulatedDeviceOptions device;
  device.call_cpu_max = call_cpu_max;
  const std::unique_ptr<GuestSession> session =
      MakeEmulatedSession(driver.get(), device, std::move(options));
  ASSAY_RETURN_IF_ERROR(session->Load(fd.get(), {{"x", 256, false}, {"y", 256, true}}, {64}));
  (void)session->Call(GuestCache::kLeave, absl::Seconds(60));
  return session->ended();
}

TEST(EmulatedSessionTest, ACallThatTakesTooMuchCpuTimeIsTimedOut) {
  ASSERT_OK_AND_ASSIGN(const std::optional<GuestEnd> end, EndOfACall(absl::Nanoseconds(1)));
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->kind, GuestFault::TIMED_OUT) << end->message;
  EXPECT_EQ(end->check, "TIME_BUDGET");
  EXPECT_THAT(end->message, HasSubstr("smaller workload"));
}

TEST(EmulatedSessionTest, OneThatTakesLessIsNot) {
  const EmulatedDeviceOptions usual;
  ASSERT_OK_AND_ASSIGN(const std::optional<GuestEnd> end, EndOfACall(usual.call_cpu_max));
  EXPECT_FALSE(end.has_value()) << end->message;
}

}  // namespace
}  // namespace assay
