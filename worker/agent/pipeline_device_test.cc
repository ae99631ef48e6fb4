// The pipeline of a worker with a real device, between a fake builder and fake runners.
#include "base/file.h"
#include "gmock/gmock.h"
#include "worker/agent/canary.h"
#include "worker/testing/pipeline_fixture.h"

namespace assay {
namespace {

using internal::v1::GuestFault;
using internal::v1::RunnerReport;
using internal::v1::RunnerRequest;
using ::testing::HasSubstr;

class PipelineDeviceTest : public PipelineTest {
 protected:
  void SetUp() override {
    PipelineTest::SetUp();
    work_.mutable_candidate()->mutable_spec()->set_language(v1::PTX);
    work_.mutable_candidate()->mutable_spec()->set_label("the candidate");
    DeviceBackend device;
    device.driver = "libcuda.so.1";
    device.is_emulated = false;
    device.arch = 90;
    device.ordinal = 1;
    device.preflight_driver = "/lib/emulated.so";
    device.device_class = "cuda-some-gpu-sm_90";
    device.model = "Some GPU";
    device.instruction_set = "sm_90 CUDA 12.8";
    device.caveats = {"DISPLAY_ATTACHED"};
    device.ptx = &ptx_;
    device.cuda = &cuda_;
    device_ = device;
    runners_.edit = [](const RunnerRequest& request, RunnerReport* report) {
      for (auto& work : *report->mutable_workloads()) {
        if (work.has_samples()) work.mutable_samples()->mutable_device()->set_wall_ns(20'000);
      }
    };
  }

  FakeBuilder ptx_;
  FakeBuilder cuda_;
};

TEST_F(PipelineDeviceTest, ANamedWorkloadThatIsVerifiedAloneIsPreflighted) {
  work_.mutable_evaluation()->set_level(v1::VERIFY);
  work_.mutable_evaluation()->add_workloads()->set_name(work_.problem().workloads(0).name());
  ASSERT_OK(Judge());
  ASSERT_EQ(runners_.requests.size(), 1u);
  ASSERT_EQ(runners_.requests[0].work_size(), 1);
  EXPECT_TRUE(runners_.requests[0].work(0).preflight());
  EXPECT_EQ(runners_.requests[0].device().preflight_driver(), "/lib/emulated.so");
}

TEST_F(PipelineDeviceTest, PreflightsWhatIsOnlyVerifiedAndTimesTheRest) {
  work_.mutable_evaluation()->set_level(v1::RANKED);
  ASSERT_OK(Judge());
  EXPECT_EQ(outcome_.verdict(), v1::PASSED) << outcome_.message();
  ASSERT_EQ(runners_.requests.size(), 3u);
  const RunnerRequest& first = runners_.requests[0];
  EXPECT_EQ(first.device().driver(), "libcuda.so.1");
  EXPECT_EQ(first.device().ordinal(), 1);
  EXPECT_EQ(first.device().preflight_driver(), "/lib/emulated.so");
  for (const RunnerRequest::Work& work : first.work()) {
    const bool odd = work.workload().name() == "odd";
    EXPECT_EQ(work.preflight(), odd) << work.workload().name();
    EXPECT_EQ(work.measure(), !odd) << work.workload().name();
  }
  // Once is enough.
  EXPECT_EQ(runners_.requests[1].device().preflight_driver(), "");
  EXPECT_EQ(builder_.requests.size(), 1u) << "the reference alone, and no baseline of the CPU";
  EXPECT_EQ(ptx_.requests.size(), 1u);
  const v1::Measurement& measurement = outcome_.workload_results(0).measurement();
  EXPECT_EQ(measurement.protocol(), "gpu-v1");
  EXPECT_THAT(measurement.caveats(),
              ::testing::UnorderedElementsAre("DISPLAY_ATTACHED", "CLOCKS_UNKNOWN"));
  EXPECT_EQ(outcome_.environment().device_model(), "Some GPU");
  EXPECT_EQ(outcome_.environment().instruction_set(), "sm_90 CUDA 12.8");
  EXPECT_FALSE(pipeline().is_device_suspect());
}

TEST_F(PipelineDeviceTest, DetectorsSeeWhatWasBuilt) {
  ASSERT_OK_AND_ASSIGN(const TemporaryDirectory directory,
                       TemporaryDirectory::Create("pipeline-device-test"));
  work_.mutable_candidate()->mutable_files(0)->set_path("kernel.ptx");
  ptx_.artifacts["kernel.ptx"] = directory.path() + "/kernel.ptx";
  ASSERT_OK(WriteFileAtomically(ptx_.artifacts["kernel.ptx"],
                                ".version 8.0\n.target sm_80\n.entry triple()\n{\n"
                                "mov.u64 %rd1, %clock64;\ncvt.rn.f16.f32 %rs1, %f1;\nret;\n}\n"));
  ASSERT_OK(Judge());
  EXPECT_EQ(outcome_.verdict(), v1::PASSED) << "a scan only notes";
  std::vector<std::string> noted;
  for (const v1::Finding& finding : outcome_.findings()) {
    if (finding.evidence().find("in triple at PTX line") == std::string::npos) continue;
    EXPECT_EQ(finding.severity(), v1::Finding::NOTICE);
    noted.push_back(finding.detector());
  }
  EXPECT_THAT(noted, ::testing::ElementsAre("device_instructions", "precision_instructions"));
}

TEST_F(PipelineDeviceTest, PairsRunEachCandidateByItsOwnPlan) {
  work_.mutable_evaluation()->set_level(v1::PAIRED);
  work_.mutable_evaluation()->set_pair_count(2);
  FillCandidate("base.cu", work_.mutable_baseline_candidate());
  work_.mutable_baseline_candidate()->mutable_spec()->set_language(v1::CUDA_CPP);
  work_.mutable_baseline_candidate()->mutable_spec()->set_label("the baseline");
  ASSERT_OK(Judge());
  EXPECT_EQ(outcome_.verdict(), v1::PASSED) << outcome_.message();
  EXPECT_EQ(cuda_.requests.size(), 1u);
  EXPECT_EQ(outcome_.pairs_size(), 4);
  for (const RunnerRequest& request : runners_.requests) {
    const bool is_base = request.candidate_artifact() == "/artifacts/base.cu";
    EXPECT_EQ(request.device().candidate().label(), is_base ? "the baseline" : "the candidate");
  }
}

TEST_F(PipelineDeviceTest, AnUncleanEndMakesTheDeviceSuspectUntilTheNextJudgement) {
  runners_.edit = [](const RunnerRequest& request, RunnerReport* report) {
    report->mutable_candidate_fault()->set_kind(GuestFault::DEVICE_FAULT);
    report->mutable_candidate_fault()->set_check("OUT_OF_BOUNDS");
    report->set_device_unclean(true);
  };
  ASSERT_OK(Judge());
  EXPECT_EQ(outcome_.verdict(), v1::UNDEFINED_BEHAVIOR);
  EXPECT_EQ(outcome_.reason(), "OUT_OF_BOUNDS");
  EXPECT_TRUE(pipeline().is_device_suspect());
  // The canary, on a device that is well again.
  runners_.edit = nullptr;
  internal::v1::WorkSpec canary;
  MakeCanary(true, &canary);
  work_ = canary;
  ASSERT_OK(Judge());
  EXPECT_EQ(outcome_.verdict(), v1::PASSED) << outcome_.message();
  EXPECT_FALSE(pipeline().is_device_suspect());
}

TEST_F(PipelineDeviceTest, ARunnerThatDiedMakesTheDeviceSuspect) {
  runners_.status = absl::UnavailableError("the runner ended without a report");
  EXPECT_FALSE(Judge().ok());
  EXPECT_TRUE(pipeline().is_device_suspect());
}

TEST_F(PipelineDeviceTest, TimersThatDisagreeAreSuspect) {
  work_.mutable_evaluation()->set_level(v1::QUICK);
  runners_.edit = [](const RunnerRequest& request, RunnerReport* report) {
    for (auto& work : *report->mutable_workloads()) {
      if (!work.has_samples()) continue;
      work.mutable_samples()->mutable_device()->set_health_count(1);
      work.mutable_samples()->mutable_device()->set_wall_ns(20'000);
      work.mutable_samples()->mutable_device()->set_timer_disagreement_count(2);
    }
    report->add_preflight_notes("workload odd: NOT_EMULATED, an operation");
  };
  ASSERT_OK(Judge());
  EXPECT_EQ(outcome_.verdict(), v1::PASSED);
  bool timers = false;
  bool note = false;
  for (const v1::Finding& finding : outcome_.findings()) {
    timers |= finding.detector() == "device_timers" && finding.severity() == v1::Finding::SUSPECT;
    note |= finding.severity() == v1::Finding::NOTICE &&
            finding.evidence().find("NOT_EMULATED") != std::string::npos;
    EXPECT_NE(finding.detector(), "hidden_work");
  }
  EXPECT_TRUE(timers);
  EXPECT_TRUE(note);
  EXPECT_THAT(outcome_.workload_results(0).measurement().caveats(),
              ::testing::Contains("TIMERS_DISAGREE"));
}

}  // namespace
}  // namespace assay
