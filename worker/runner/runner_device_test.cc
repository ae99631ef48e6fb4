// Device-tier candidates through the runner's one entry, on a driver that looks real.
#include <sched.h>

#include <functional>
#include <vector>

#include "assay/internal/v1/runner.pb.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "worker/runner/runner.h"
#include "worker/testing/cuda_fixture.h"
#include "worker/testing/runner_fixture.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Goes on by itself: calls of a device take no time of a clock that stands still.
class TickingClock : public FakeClock {
 public:
  explicit TickingClock(absl::Duration tick) : tick_(tick) {}
  absl::Duration Monotonic() override {
    Advance(tick_);
    return FakeClock::Monotonic();
  }

 private:
  const absl::Duration tick_;
};

class RunnerDeviceTest : public RunnerTest {
 protected:
  void SetUp() override {
    RunnerTest::SetUp();
    ASSERT_NE(control_ = ResetFakeCuda(), nullptr);
    internal::v1::DeviceTarget& device = *request_.mutable_device();
    device.set_driver(FakeCudaPath());
    device.set_arch(80);
    FillTripleSpec(device.mutable_candidate());
  }

  RunnerReport RunPtx(const std::string& ptx) {
    const std::string path = folder_->path() + "/candidate.ptx";
    EXPECT_OK(WriteFileAtomically(path, ptx));
    request_.set_candidate_artifact(path);
    // The runner takes references alone.
    FakeGuestSource guests(TripleReference(), TripleReference(), &clock_);
    TickingClock clock(tick_);
    RunnerReport report;
    ExecuteRunnerRequest(request_, &guests, &clock, on_progress_, health_, &report);
    return report;
  }

  void AddPreflight(const std::string& name, int64_t n) {
    AddWork(name, n, false, false);
    request_.mutable_work(request_.work_size() - 1)->set_preflight(true);
    request_.mutable_device()->set_preflight_driver(
        TestLibrary("../bin/libassay_emulated_cuda.so"));
  }

  FakeCudaControl* control_ = nullptr;
  DeviceHealthSource* health_ = nullptr;
  absl::Duration tick_ = absl::Milliseconds(5);
  std::function<void(const internal::v1::RunnerProgress&)> on_progress_ =
      [](const internal::v1::RunnerProgress&) {};
};

TEST_F(RunnerDeviceTest, AnswersADeviceQueryAndDoesNothingElse) {
  RunnerRequest request;
  request.mutable_device_query()->set_driver(FakeCudaPath());
  request_ = request;
  RunnerReport report = RunPtx("");
  EXPECT_FALSE(report.has_error()) << report.error().message();
  EXPECT_EQ(report.device_facts().name(), kFakeCudaDeviceName);
  request_.mutable_device_query()->set_driver(TestLibrary("no_such_libcuda.so.1"));
  report = RunPtx("");
  EXPECT_EQ(report.error().reason(), "DRIVER_MISSING");
  EXPECT_EQ(report.error().code(), "UNAVAILABLE");
  EXPECT_THAT(report.error().message(), HasSubstr("install"));
}

TEST_F(RunnerDeviceTest, VerifiesAndMeasuresOnTheDevicesClock) {
  class Health : public DeviceHealthSource {
   public:
    std::optional<DeviceHealth> Sample() override { return DeviceHealth{1410, 1593, 40, 200, 0}; }
  } health;
  health_ = &health;
  AddWork("main", 64, true, true);
  const RunnerReport report = RunPtx(TriplePtx(kTripleBody));
  ASSERT_FALSE(report.has_error()) << report.error().message();
  ASSERT_FALSE(report.has_candidate_fault()) << report.candidate_fault().message();
  ASSERT_TRUE(report.workloads(0).verification().passed());
  const v1::RunnerSamples& samples = report.workloads(0).samples();
  ASSERT_GE(samples.warm_ns_size(), 30);
  ASSERT_GE(samples.cold_ns_size(), 5);
  // Two blocks, by the fake's clock.
  for (const double ns : samples.warm_ns()) EXPECT_NEAR(ns, 1020, 1);
  for (const double ns : samples.cold_ns()) EXPECT_NEAR(ns, 2040, 1);
  EXPECT_NEAR(samples.handshake_ns(), 1000, 1);
  EXPECT_EQ(samples.discarded_count(), 0);
  ASSERT_TRUE(samples.has_device());
  EXPECT_EQ(samples.device().sm_clock_mhz_max(), 1410);
  EXPECT_EQ(samples.device().disturbed_count(), 0);
  EXPECT_EQ(samples.device().health_count(), samples.warm_ns_size() + samples.cold_ns_size());
  EXPECT_GE(control_->cache_flushes, samples.cold_ns_size());
  EXPECT_THAT(report.walls(), ElementsAre("device-tier"));
  EXPECT_FALSE(report.device_unclean());
}

TEST_F(RunnerDeviceTest, TheWarmUpCountsWhatTheDeviceDid) {
  AddWork("main", 64, false, true);
  control_->event_excess_ns = 1e6;
  tick_ = absl::Milliseconds(1);
  RunnerReport report = RunPtx(TriplePtx(kTripleBody));
  // 0.2 s of calls of 1 ms; the host's clock, which goes on faster, does not end it.
  EXPECT_EQ(report.workloads(0).samples().warmup_calls(), 200) << report.DebugString();
  control_->event_excess_ns = 0;
  report = RunPtx(TriplePtx(kTripleBody));
  // Short calls never get there, and end it after 1 s by the host's clock.
  EXPECT_GT(report.workloads(0).samples().warmup_calls(), 200);
  EXPECT_LT(report.workloads(0).samples().warmup_calls(), 4000);
}

TEST_F(RunnerDeviceTest, ThrottledCallsAreDroppedButNotTooMany) {
  class Health : public DeviceHealthSource {
   public:
    std::optional<DeviceHealth> Sample() override {
      return DeviceHealth{1410, 1593, 40, 200, ++calls_ % 3 == 0 ? uint64_t{4} : 0};
    }

   private:
    int calls_ = 0;
  } health;
  health_ = &health;
  AddWork("main", 64, false, true);
  const RunnerReport report = RunPtx(TriplePtx(kTripleBody));
  const v1::RunnerSamples& samples = report.workloads(0).samples();
  ASSERT_GE(samples.warm_ns_size(), 30) << report.DebugString();
  EXPECT_GT(samples.discarded_count(), 0);
  EXPECT_GT(samples.device().disturbed_count(), 0);
  EXPECT_EQ(samples.device().throttle_bits(), 4u);
  const double tries = samples.warm_ns_size() + samples.cold_ns_size() + samples.discarded_count();
  EXPECT_LE(samples.discarded_count(), 0.25 * tries);
}

TEST_F(RunnerDeviceTest, WrongAndUnwrittenOutputsAreFound) {
  AddWork("main", 64, true, true);
  RunnerReport report = RunPtx(TriplePtx("  st.global.f32 [%y], %v;"));
  EXPECT_EQ(report.workloads(0).reason(), "MISMATCH");
  report = RunPtx(TriplePtx(""));
  EXPECT_EQ(report.workloads(0).reason(), "OUTPUT_NOT_WRITTEN");
}

TEST_F(RunnerDeviceTest, AStickyErrorLeavesTheDeviceUnclean) {
  AddWork("main", 64, true, true);
  AddWork("other", 40, true, true);
  const RunnerReport report = RunPtx(TriplePtx("  mov.u64 %d0, 0;\n  st.global.f32 [%d0], %v;"));
  ASSERT_TRUE(report.has_candidate_fault()) << report.DebugString();
  EXPECT_EQ(report.candidate_fault().kind(), GuestFault::DEVICE_FAULT);
  EXPECT_EQ(report.candidate_fault().check(), "OUT_OF_BOUNDS");
  EXPECT_TRUE(report.device_unclean());
  EXPECT_EQ(report.workloads_size(), 1);
}

TEST_F(RunnerDeviceTest, ADeviceThatFailsIsTheInfrastructures) {
  AddWork("main", 64, true, false);
  control_->fail_next_kernel = cuda::CUDA_ERROR_ECC_UNCORRECTABLE;
  const RunnerReport report = RunPtx(TriplePtx(kTripleBody));
  EXPECT_FALSE(report.has_candidate_fault());
  EXPECT_EQ(report.error().reason(), "GUEST_LOST");
  EXPECT_THAT(report.error().message(), HasSubstr("ECC_UNCORRECTABLE"));
  EXPECT_TRUE(report.device_unclean());
}

TEST_F(RunnerDeviceTest, AModuleThatIsNotLoadedForNoFaultOfItsTextIsTheInfrastructures) {
  AddWork("main", 64, true, false);
  control_->load_result = cuda::CUDA_ERROR_UNKNOWN;
  RunnerReport report = RunPtx(TriplePtx(kTripleBody));
  EXPECT_FALSE(report.has_candidate_fault()) << report.DebugString();
  EXPECT_EQ(report.error().reason(), "DRIVER_FAILED");
  EXPECT_TRUE(report.device_unclean());
  control_->load_result = cuda::CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  report = RunPtx(TriplePtx(kTripleBody));
  EXPECT_FALSE(report.has_error()) << report.DebugString();
  EXPECT_EQ(report.candidate_fault().kind(), GuestFault::DRIVER_TOO_OLD);
  EXPECT_FALSE(report.device_unclean());
}

TEST_F(RunnerDeviceTest, ThePreflightFindsFaultsBeforeTheDeviceRunsAnything) {
  AddPreflight("odd", 7);
  AddWork("main", 64, true, true);
  // Thread 0 reads what thread 1 writes, without a barrier: right by luck on most devices.
  const RunnerReport report = RunPtx(TriplePtx(R"(  mul.f32 %v, %v, 0f40400000;
  st.global.f32 [%y], %v;
  setp.ne.s32 %q, %i, 0;
  @%q bra done;
  ld.global.f32 %f0, [%y+4];)"));
  ASSERT_TRUE(report.has_candidate_fault()) << report.DebugString();
  EXPECT_EQ(report.candidate_fault().kind(), GuestFault::DEVICE_FAULT);
  EXPECT_THAT(report.candidate_fault().check(), HasSubstr("RACE"));
  EXPECT_EQ(report.candidate_fault().workload(), "odd");
  EXPECT_EQ(report.workloads_size(), 0);
  EXPECT_EQ(control_->candidate_launches, 0);
  EXPECT_FALSE(report.device_unclean());
}

TEST_F(RunnerDeviceTest, WhatTheEmulatedDriverDoesNotKnowIsANoteAndNoFault) {
  AddPreflight("odd", 7);
  // Beyond what the emulated device runs in the time of a call; the fake's budget is no smaller.
  request_.mutable_device()->set_arch(75);
  const std::string newer = absl::StrReplaceAll(TriplePtx(kTripleBody), {{"sm_75", "sm_80"}});
  const RunnerReport report = RunPtx(newer);
  EXPECT_FALSE(report.has_error()) << report.error().message();
  EXPECT_FALSE(report.has_candidate_fault()) << report.candidate_fault().message();
  ASSERT_EQ(report.preflight_notes_size(), 1) << report.DebugString();
  EXPECT_THAT(report.preflight_notes(0), HasSubstr("workload odd: LOAD_FAILED"));
  EXPECT_TRUE(report.workloads(0).verification().passed());
  EXPECT_GT(control_->candidate_launches, 0);
}

TEST_F(RunnerDeviceTest, ACleanPreflightSaysNothing) {
  AddPreflight("odd", 7);
  AddWork("main", 64, true, false);
  const RunnerReport report = RunPtx(TriplePtx(kTripleBody));
  EXPECT_FALSE(report.has_error()) << report.error().message();
  EXPECT_EQ(report.preflight_notes_size(), 0);
  ASSERT_EQ(report.workloads_size(), 2);
  EXPECT_TRUE(report.workloads(1).verification().passed());
  // What it counted is kept: of the odd workload, a multiplication an element.
  EXPECT_EQ(report.workloads(0).observed().launches(), 1);
  EXPECT_EQ(report.workloads(0).observed().f32_flops(), 7);
  EXPECT_FALSE(report.workloads(1).has_observed());
}

TEST_F(RunnerDeviceTest, ThePreflightHasAllCoresAndTheDeviceThePinnedOne) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  int core = 0;
  while (!CPU_ISSET(core, &before)) ++core;
  request_.set_runner_core(core);
  AddPreflight("odd", 7);
  AddWork("main", 64, true, false);
  std::vector<int> counts;
  on_progress_ = [&](const internal::v1::RunnerProgress&) {
    cpu_set_t now;
    ASSERT_EQ(sched_getaffinity(0, sizeof now, &now), 0);
    counts.push_back(CPU_COUNT(&now));
  };
  const RunnerReport report = RunPtx(TriplePtx(kTripleBody));
  EXPECT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_FALSE(report.has_error()) << report.error().message();
  ASSERT_GE(counts.size(), 3u);
  EXPECT_EQ(counts.front(), CPU_COUNT(&before)) << "of the preflight";
  EXPECT_EQ(counts.back(), 1);
}

TEST_F(RunnerDeviceTest, AnEmulatedDeviceIsNeverTimed) {
  request_.mutable_device()->set_driver(TestLibrary("../bin/libassay_emulated_cuda.so"));
  AddWork("main", 64, true, true);
  const RunnerReport report = RunPtx(TriplePtx(kTripleBody));
  EXPECT_EQ(report.error().reason(), "DRIVER_EMULATED");
  EXPECT_EQ(report.workloads_size(), 0);
}

}  // namespace
}  // namespace assay
