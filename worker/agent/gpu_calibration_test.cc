#include "worker/agent/gpu_calibration.h"

#include <sys/stat.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "assay/v1/fleet.pb.h"
#include "base/file.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

// A program in the place of assay-gpu-ceilings.
class GpuCalibrationTest : public ::testing::Test {
 protected:
  absl::Status Run(const std::string& script) {
    options_.program = folder_.path() + "/ceilings";
    EXPECT_OK(WriteFileAtomically(options_.program, absl::StrCat("#!/bin/sh\n", script, "\n")));
    EXPECT_EQ(chmod(options_.program.c_str(), 0755), 0);
    return MeasureGpuCeilings(options_, &calibration_);
  }

  const TemporaryDirectory folder_ = *TemporaryDirectory::Create("gpu-calibration");
  GpuCalibrationOptions options_;
  v1::Calibration calibration_;
};

TEST_F(GpuCalibrationTest, TakesWhatTheProgramMeasures) {
  v1::Calibration measured;
  measured.set_launch_ns(2100);
  measured.add_points()->set_kernel("copy");
  const std::string path = folder_.path() + "/answer";
  EXPECT_OK(WriteFileAtomically(path, measured.SerializeAsString()));
  options_.driver = "lib cuda.so";
  options_.ordinal = 3;
  ASSERT_OK(Run(absl::StrCat("[ \"$#\" = 2 ] && [ \"$1\" = 'lib cuda.so' ] && [ \"$2\" = 3 ] && ",
                             "/bin/cat ", path)));
  EXPECT_EQ(calibration_.launch_ns(), 2100);
  EXPECT_EQ(calibration_.points_size(), 1);
}

TEST_F(GpuCalibrationTest, TheNumberNamesTheDeviceThatItNamesHere) {
  const std::string path = folder_.path() + "/environment";
  ASSERT_EQ(setenv("ASSAY_PLANTED", "secret", 1), 0);
  ASSERT_EQ(setenv("CUDA_VISIBLE_DEVICES", "2,0", 1), 0);
  (void)Run(absl::StrCat("/bin/cat /proc/$$/environ >", path));
  unsetenv("ASSAY_PLANTED");
  unsetenv("CUDA_VISIBLE_DEVICES");
  ASSERT_OK_AND_ASSIGN(const std::string environment, ReadFile(path, 1 << 16));
  EXPECT_EQ(environment, std::string("CUDA_VISIBLE_DEVICES=2,0\0", 25));
}

TEST_F(GpuCalibrationTest, SaysWhatWentWrong) {
  const struct {
    const char* name;
    const char* script;
    const char* message;
  } cases[] = {
      {"fails", "exit 2", "measured no ceilings of CUDA device 0"},
      {"killed", "kill -9 $$", "measured no ceilings"},
      {"silent", "exit 0", "measured no ceilings"},
      {"not a calibration", "echo hello", "measured no ceilings"},
      {"too much", "while :; do echo 0123456789012345678901234567890123456789; done", "still busy"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    calibration_.Clear();
    const absl::Status status = Run(c.script);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
}

TEST_F(GpuCalibrationTest, KillsWhatDoesNotEnd) {
  options_.timeout = absl::Milliseconds(50);
  const absl::Status status = Run("while :; do :; done");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("still busy after 50ms"));
}

TEST_F(GpuCalibrationTest, TheProgramIsMissing) {
  options_.program = "/no/such/program";
  const absl::Status status = MeasureGpuCeilings(options_, &calibration_);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/no/such/program"));
}

}  // namespace
}  // namespace assay
