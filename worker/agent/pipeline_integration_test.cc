// The pipeline with the real builder, runner and guest: what hostile and honest candidates get.
#include <sched.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "assay/internal/v1/dispatch.pb.h"
#include "assay/v1/fleet.pb.h"
#include "base/file.h"
#include "base/random.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "kernels/candidate.h"
#include "kernels/problem.h"
#include "worker/agent/canary.h"
#include "worker/agent/pipeline.h"
#include "worker/agent/runner_pool.h"
#include "worker/builder/cuda_builder.h"
#include "worker/ceiling/calibrate.h"
#include "worker/measure/statistics.h"
#include "worker/sandbox/sandbox.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

std::string FromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

class PipelineIntegrationTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { signal(SIGPIPE, SIG_IGN); }

  void SetUp() override {
    const std::string bin = FromEnvironment("ASSAY_BIN_DIR");
    ASSERT_FALSE(bin.empty()) << "run by ctest, which sets ASSAY_BIN_DIR";
    for (const WallProbe& wall : ProbeWalls()) {
      if (wall.state != WallState::kStanding &&
          (wall.name == kWallBubblewrap || wall.name == kWallUserNamespace)) {
        GTEST_SKIP() << "this machine has no sandbox: " << wall.name;
      }
    }
    ASSERT_OK_AND_ASSIGN(TemporaryDirectory folder, TemporaryDirectory::Create("pipeline-test"));
    folder_ = std::make_unique<TemporaryDirectory>(std::move(folder));
    CppBuilderOptions builder;
    builder.cache_directory = folder_->path() + "/artifacts";
    ASSERT_OK_AND_ASSIGN(builder_, MakeCppBuilder(builder));
    PipelineOptions options;
    options.machine = ReadMachineFacts("");
    options.cores = PlaceCores(options.machine);
    runners_ = MakeRunners(options.cores.guest_core, false);
    CalibrateOptions calibrate;
    calibrate.machine = options.machine;
    calibrate.point_time = absl::Milliseconds(1);
    calibrate.all_cores = false;
    calibrate.footprint_bytes_max = 32 << 20;
    auto calibration = std::make_shared<v1::Calibration>();
    ASSERT_OK(Calibrate(calibrate, calibration.get()));
    options.builder = builder_.get();
    options.runners = runners_.get();
    options.clock = SystemClock();
    options.harness_version = "test";
    options.nonce = SecureRandom64;
    options.calibration = calibration;
    options.recalibrate = [calibrate](v1::Calibration* known) {
      v1::Calibration fresh;
      const absl::Status status = Calibrate(calibrate, &fresh);
      MergeCalibration(fresh, known);
      return status;
    };
    pipeline_ = std::make_unique<Pipeline>(std::move(options));
  }

  static std::unique_ptr<RunnerPool> MakeRunners(int guest_core, bool background) {
    RunnerPoolOptions pool;
    pool.start = [guest_core, background](int slot, int guests) {
      RunnerOptions runner;
      runner.runner_binary = FromEnvironment("ASSAY_BIN_DIR") + "/assay-runner";
      runner.guest_binary = FromEnvironment("ASSAY_BIN_DIR") + "/assay-guest";
      runner.slot = slot;
      runner.guests = guests;
      runner.guest_core = guest_core;
      runner.background = background;
      return RunnerClient::Start(runner);
    };
    return std::make_unique<RunnerPool>(pool);
  }

  // The canary problem (y = 2 x) with another body.
  v1::Outcome Judge(const std::string& body, v1::Level level) {
    internal::v1::WorkSpec work;
    MakeCanary(false, &work);
    work.mutable_evaluation()->set_level(level);
    work.mutable_candidate()->mutable_files(0)->set_content(absl::StrCat(
        "#include <cstdlib>\n#include <cstring>\n#include <unistd.h>\n",
        "extern \"C\" void canary(const float* x, float* y, int64_t n) {\n", body, "\n}\n"));
    return Judge(work);
  }

  v1::Outcome Judge(const internal::v1::WorkSpec& work) {
    v1::Outcome outcome;
    v1::Timeline timeline;
    const PipelineHooks hooks{[](std::string_view) {}, [] { return true; }};
    EXPECT_OK(pipeline_->Judge(work, hooks, &outcome, &timeline));
    return outcome;
  }

  std::unique_ptr<TemporaryDirectory> folder_;
  std::unique_ptr<Builder> builder_;
  std::unique_ptr<RunnerPool> runners_;
  std::unique_ptr<Pipeline> pipeline_;
};

TEST_F(PipelineIntegrationTest, HonestAndHostileCandidatesGetTheirVerdicts) {
  const struct {
    const char* name;
    const char* body;
    v1::Verdict verdict;
    const char* reason;
  } rows[] = {
      {"right", "for (int64_t i = 0; i < n; ++i) y[i] = 2 * x[i];", v1::PASSED, "PASSED"},
      {"wrong", "for (int64_t i = 0; i < n; ++i) y[i] = 3 * x[i];", v1::INCORRECT, "MISMATCH"},
      {"tail", "for (int64_t i = 0; i < n - 1; ++i) y[i] = 2 * x[i];", v1::INCORRECT,
       "OUTPUT_NOT_WRITTEN"},
      {"nan", "for (int64_t i = 0; i < n; ++i) y[i] = i == 3 ? __builtin_nanf(\"\") : 2 * x[i];",
       v1::INCORRECT, "NAN_OUTPUT"},
      {"crash", "*(volatile int*)8 = 1;", v1::RUNTIME_ERROR, "CRASHED"},
      {"exit", "_exit(0);", v1::RUNTIME_ERROR, "EXITED"},
      {"past the end", "for (int64_t i = 0; i < n + 4096; ++i) y[i] = 1;", v1::UNDEFINED_BEHAVIOR,
       "OUT_OF_BOUNDS"},
      {"writes an input", "const_cast<float*>(x)[0] = 1;", v1::UNDEFINED_BEHAVIOR, "INPUT_WRITTEN"},
      {"does not compile", "y[0] = ;", v1::COMPILE_ERROR, "COMPILE_FAILED"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const v1::Outcome outcome = Judge(row.body, v1::VERIFY);
    EXPECT_EQ(outcome.verdict(), row.verdict) << outcome.ShortDebugString();
    EXPECT_EQ(outcome.reason(), row.reason) << outcome.message();
  }
}

TEST_F(PipelineIntegrationTest, AReplayIsGamed) {
  const v1::Outcome outcome = Judge(
      "static float kept[4096]; static int calls = 0;\n"
      "if (++calls <= 12) { for (int64_t i = 0; i < n; ++i) y[i] = kept[i] = 2 * x[i]; }\n"
      "else { memcpy(y, kept, n * sizeof(float)); }",
      v1::QUICK);
  EXPECT_EQ(outcome.verdict(), v1::GAMED) << outcome.ShortDebugString();
  EXPECT_EQ(outcome.reason(), "STALE_OUTPUT");
}

TEST_F(PipelineIntegrationTest, AQuickMeasurementIsWhole) {
  const v1::Outcome outcome = Judge("for (int64_t i = 0; i < n; ++i) y[i] = 2 * x[i];", v1::QUICK);
  ASSERT_EQ(outcome.verdict(), v1::PASSED) << outcome.ShortDebugString();
  const v1::WorkloadResult& result = outcome.workload_results(0);
  EXPECT_GE(result.measurement().sample_count(), 30);
  EXPECT_GT(result.measurement().handshake_ns(), 0);
  EXPECT_GT(result.measurement().median_ns(), 0);
  EXPECT_GT(result.ceiling().time_ns(), 0);
  std::printf("canary: median %.0f ns, handshake %.0f ns, %s bound\n",
              result.measurement().median_ns(), result.measurement().handshake_ns(),
              v1::Ceiling::Bound_Name(result.ceiling().bound()).c_str());
}

// Nice value and scheduling policy of the child of this process that runs `program`, as in proc(5).
std::pair<int, int> SchedulingOf(const std::string& program) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(entry.path().filename().native()[0]))) {
      continue;
    }
    std::ifstream file(entry.path() / "stat");
    std::string stat;
    if (!std::getline(file, stat)) continue;  // it ended
    const size_t open = stat.find('(');
    const size_t close = stat.rfind(')');
    if (close == std::string::npos || stat.substr(open + 1, close - open - 1) != program) continue;
    // Fields from the third on: state, parent, ...
    const std::vector<std::string> fields = absl::StrSplit(stat.substr(close + 2), ' ');
    if (fields.size() < 39 || fields[1] != absl::StrCat(getpid())) continue;
    return {std::stoi(fields[16]), std::stoi(fields[38])};
  }
  return {-1, -1};
}

TEST_F(PipelineIntegrationTest, AnEmulatedDeviceCountsAndGivesWayToMeasuring) {
  const std::string bin = FromEnvironment("ASSAY_BIN_DIR");
  CudaBuilderOptions builder;
  builder.cache_directory = folder_->path() + "/device-artifacts";
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Builder> ptx, MakePtxBuilder(builder));
  const std::unique_ptr<RunnerPool> runners = MakeRunners(-1, true);
  PipelineOptions options;
  options.builder = builder_.get();
  options.runners = runners.get();
  options.clock = SystemClock();
  options.harness_version = "test";
  options.nonce = SecureRandom64;
  DeviceBackend device;
  device.driver = bin + "/libassay_emulated_cuda.so";
  device.device_class = "emulated:sm_80";
  device.ptx = ptx.get();
  options.device = device;
  Pipeline pipeline(std::move(options));
  internal::v1::WorkSpec work;
  MakeCanary(true, &work);
  std::pair<int, int> scheduling = {-1, -1};
  const PipelineHooks hooks{[&](std::string_view stage) {
                              if (stage == "VERIFY") scheduling = SchedulingOf("assay-runner");
                            },
                            [] { return true; }};
  v1::Outcome outcome;
  v1::Timeline timeline;
  ASSERT_OK(pipeline.Judge(work, hooks, &outcome, &timeline));
  ASSERT_EQ(outcome.verdict(), v1::PASSED) << outcome.ShortDebugString();
  EXPECT_EQ(scheduling.first, 19);
  EXPECT_EQ(scheduling.second, SCHED_BATCH);

  // y = x + x over 1000 elements by 8 blocks of 128 threads.
  ASSERT_EQ(outcome.workload_results_size(), 1);
  const v1::ObservedWork& observed = outcome.workload_results(0).observed();
  EXPECT_EQ(observed.launches(), 1);
  EXPECT_EQ(observed.f32_flops(), 1000);
  EXPECT_EQ(observed.global_load_bytes(), 4000);
  EXPECT_EQ(observed.global_store_bytes(), 4000);
  EXPECT_EQ(observed.global_sectors(), 250);
  EXPECT_EQ(observed.global_sectors_least(), 250);
  // One warp takes the branch, the last one, and some of its lanes do not: 1000 ends inside of it.
  EXPECT_EQ(observed.branches(), 1);
  EXPECT_EQ(observed.divergent_branches(), 1);
  EXPECT_DOUBLE_EQ(observed.arithmetic_intensity(), 1000.0 / (32 * 250));
  EXPECT_DOUBLE_EQ(observed.declared_intensity(), 1000.0 / 8000);
  EXPECT_EQ(outcome.findings_size(), 0) << outcome.ShortDebugString();
}

// Reports where the time of one evaluation goes; asserts nothing about speed.
TEST_F(PipelineIntegrationTest, LatencyOfACachedEvaluation) {
  const std::string source = FromEnvironment("ASSAY_SOURCE_DIR");
  internal::v1::WorkSpec work;
  ASSERT_OK(LoadProblemDirectory(source + "/kernels/problems/vector_add", work.mutable_problem()));
  v1::Candidate& candidate = *work.mutable_candidate();
  candidate.mutable_spec()->set_problem("vector_add");
  candidate.mutable_spec()->set_language(v1::CPP);
  candidate.add_files()->set_path("add.cc");
  candidate.mutable_files(0)->set_content(
      "extern \"C\" void vector_add(const float* a, const float* b, float* c, int64_t n) {\n"
      "  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];\n}\n");
  candidate.set_digest(CandidateDigest(candidate));
  work.mutable_evaluation()->add_workloads()->set_name("small");
  for (const v1::Level level : {v1::VERIFY, v1::QUICK}) {
    work.mutable_evaluation()->set_level(level);
    std::vector<double> times_ms;
    for (int i = 0; i < 9; ++i) {
      const absl::Duration start = SystemClock()->Monotonic();
      v1::Outcome outcome;
      v1::Timeline timeline;
      const PipelineHooks hooks{[](std::string_view) {}, [] { return true; }};
      ASSERT_OK(pipeline_->Judge(work, hooks, &outcome, &timeline));
      times_ms.push_back(absl::ToDoubleMilliseconds(SystemClock()->Monotonic() - start));
      ASSERT_EQ(outcome.verdict(), v1::PASSED) << outcome.ShortDebugString();
      if (i < 8) continue;
      std::printf("%s: p50 %.1f ms; last: %s\n", v1::Level_Name(level).c_str(), Median(times_ms),
                  timeline.ShortDebugString().c_str());
    }
  }
}

}  // namespace
}  // namespace assay
