// The client of a runner against scripts in a runner's place. The clock is a fake that runs on
// whenever the client asks whether to go on.
#include "worker/runner/runner_client.h"

#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "assay/internal/v1/runner.pb.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"

namespace assay {
namespace {

using internal::v1::RunnerProgress;
using internal::v1::RunnerReport;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// RunnerMessage frames: progress in phase MEASURE, and a report whose output_log is "x".
constexpr char kProgress[] = "printf '\\004\\000\\000\\000\\012\\002\\010\\002' >&3\n";
constexpr char kReport[] = "printf '\\005\\000\\000\\000\\022\\003\\052\\001x' >&3\n";

class RunnerClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    signal(SIGPIPE, SIG_IGN);  // as the worker does
    ASSERT_OK_AND_ASSIGN(TemporaryDirectory folder, TemporaryDirectory::Create("runner-client"));
    folder_ = std::make_unique<TemporaryDirectory>(std::move(folder));
  }

  // The script goes on once the request has been written.
  absl::StatusOr<std::unique_ptr<RunnerReport>> Run(const std::string& script,
                                                    absl::Duration timeout) {
    RunnerOptions options;
    options.runner_binary = folder_->path() + "/runner";
    options.background = background_;
    options.clock = &clock_;
    EXPECT_OK(
        WriteFileAtomically(options.runner_binary, "#!/bin/sh\nhead -c 1 >/dev/null\n" + script));
    EXPECT_EQ(chmod(options.runner_binary.c_str(), 0700), 0);
    ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<RunnerClient> runner, RunnerClient::Start(options));
    RunnerHooks hooks;
    hooks.keep_going = [this] {
      clock_.Advance(step_);
      return wanted_;
    };
    hooks.on_progress = [this](const RunnerProgress& progress) {
      phases_.push_back(progress.phase());
    };
    return runner->Run(internal::v1::RunnerRequest(), timeout, hooks);
  }

  FakeClock clock_;
  absl::Duration step_ = absl::ZeroDuration();
  bool wanted_ = true;
  bool background_ = false;
  std::vector<int> phases_;
  std::unique_ptr<TemporaryDirectory> folder_;
};

TEST_F(RunnerClientTest, PassesProgressOnAndReturnsTheReport) {
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<RunnerReport> report,
      Run(absl::StrCat(kProgress, kProgress, kReport), absl::Seconds(limits::kEvaluationSeconds)));
  EXPECT_EQ(report->output_log(), "x");
  EXPECT_THAT(phases_, ElementsAre(RunnerProgress::MEASURE, RunnerProgress::MEASURE));
}

TEST_F(RunnerClientTest, ARunnerThatShowsNoLifeHangs) {
  step_ = absl::Seconds(limits::kRunnerSilentSeconds) / 2;
  const absl::Status status =
      Run("exec sleep 600\n", absl::Seconds(limits::kEvaluationSeconds)).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no sign of life")));
  EXPECT_EQ(GetReason(status), "RUNNER_SILENT");
}

TEST_F(RunnerClientTest, ARunnerThatShowsLifeRunsOutOfTime) {
  // Each look at the pipe finds progress.
  step_ = absl::Seconds(limits::kRunnerSilentSeconds) / 2;
  const absl::Status status = Run(absl::StrCat("while :; do ", kProgress, "done\n"),
                                  10 * absl::Seconds(limits::kRunnerSilentSeconds))
                                  .status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded));
}

// It was not the candidate that took the time.
TEST_F(RunnerClientTest, ARunnerInTheBackgroundThatHadNoCoreIsTheInfrastructures) {
  background_ = true;
  step_ = absl::Seconds(limits::kRunnerSilentSeconds) / 2;
  const std::string script = absl::StrCat("while :; do ", kProgress, "done\n");
  const absl::Status status =
      Run(script, 10 * absl::Seconds(limits::kRunnerSilentSeconds)).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("goes first")));
  EXPECT_EQ(GetReason(status), "RUNNER_STARVED");
  // Starting alone takes more than half of this.
  EXPECT_THAT(Run(script, absl::Microseconds(2)), StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST_F(RunnerClientTest, WhatIsNoLongerWantedEnds) {
  wanted_ = false;
  EXPECT_THAT(Run("exec sleep 600\n", absl::Seconds(1)), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(RunnerClientTest, OnlyWhatNumbersDevicesIsInherited) {
  const std::string path = folder_->path() + "/environment";
  const std::string script = absl::StrCat("cat /proc/$$/environ >", path, "\n", kReport);
  ASSERT_EQ(setenv("ASSAY_PLANTED", "secret", 1), 0);
  ASSERT_EQ(setenv("CUDA_VISIBLE_DEVICES", "2,0", 1), 0);
  ASSERT_EQ(setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1), 0);
  EXPECT_OK(Run(script, absl::Seconds(limits::kEvaluationSeconds)).status());
  ASSERT_OK_AND_ASSIGN(std::string environment, ReadFile(path, 1 << 16));
  std::replace(environment.begin(), environment.end(), '\0', '\n');
  EXPECT_EQ(environment, "CUDA_VISIBLE_DEVICES=2,0\nCUDA_DEVICE_ORDER=PCI_BUS_ID\n");
  for (const char* const name : {"ASSAY_PLANTED", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"}) {
    unsetenv(name);
  }
  EXPECT_OK(Run(script, absl::Seconds(limits::kEvaluationSeconds)).status());
  ASSERT_OK_AND_ASSIGN(environment, ReadFile(path, 1 << 16));
  EXPECT_EQ(environment, "");
}

TEST_F(RunnerClientTest, BadEndsAreTheInfrastructures) {
  const absl::Duration timeout = absl::Seconds(limits::kEvaluationSeconds);
  EXPECT_THAT(Run("exit 7\n", timeout),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("exit code 7")));
  EXPECT_THAT(Run("kill -9 $$\n", timeout),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("signal 9")));
  EXPECT_THAT(Run("printf '\\004\\000\\000\\000\\377\\377\\377\\377' >&3\n", timeout),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("does not parse")));
  EXPECT_THAT(Run("printf '\\377\\377\\377\\377' >&3\nexec sleep 600\n", timeout),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

}  // namespace
}  // namespace assay
