#include "worker/options.h"

#include <unistd.h>

#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "worker/sandbox/required_walls.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

TEST(WorkerOptionsTest, TakesBothForms) {
  ASSERT_OK_AND_ASSIGN(const WorkerOptions options,
                       ParseWorkerOptions({"--server", "judge:7400", "--name=w-1", "--calibrate",
                                           "--calibration", "quick"}));
  EXPECT_EQ(options.server, "judge:7400");
  EXPECT_EQ(options.name, "w-1");
  EXPECT_TRUE(options.calibrate);
  EXPECT_TRUE(options.quick_calibration);
  EXPECT_THAT(options.state_directory, HasSubstr("w-1"));
}

TEST(WorkerOptionsTest, TakesFilesOfTheConnection) {
  ASSERT_OK_AND_ASSIGN(const WorkerOptions options,
                       ParseWorkerOptions({"--server=judge:7400", "--tls-ca", "/ca",
                                           "--tls-cert=/c", "--tls-key", "/k", "--token-file=/t"}));
  EXPECT_EQ(options.files.ca, "/ca");
  EXPECT_EQ(options.files.certificate, "/c");
  EXPECT_EQ(options.files.key, "/k");
  EXPECT_EQ(options.files.token, "/t");
}

TEST(WorkerOptionsTest, NamesWhatIsWrong) {
  const struct {
    std::vector<std::string> arguments;
    std::string want;
  } cases[] = {
      {{}, "--server is missing"},
      {{"--server"}, "--server needs a value"},
      {{"--server=judge:7400", "--calibration", "slow"}, "--calibration takes"},
      {{"--server=nope"}, "--server: 'nope' is not HOST:PORT"},
      {{"--server=judge:0"}, "--server: 'judge:0' is not HOST:PORT"},
      {{"--server="}, "--server: '' is not HOST:PORT"},
      {{"--server=judge:7400", "--name=W"}, "[a-z0-9-]"},
      {{"--server=judge:7400", "--speed=9"}, "unknown flag --speed"},
      {{"--server=judge:7400", "--device=gpu"}, "--device takes cpu, cuda, cuda:N or emulated"},
      {{"--server=judge:7400", "--device=emulated:sm_81"}, "not 'emulated:sm_81'"},
      {{"--server=judge:7400", "--device=cuda:"}, "not 'cuda:'"},
      {{"--server=judge:7400", "--device=cuda:-1"}, "not 'cuda:-1'"},
      {{"--server=judge:7400", "--device=cuda:64"}, "not 'cuda:64'"},
      {{"--server=judge:7400", "--require-wall=moat"}, "seccomp, uid, rlimits"},
      {{"--server=judge:7400", "--require-wall"}, "--require-wall needs a value"},
      {{"--server=judge:7400", "--require-walls=none"}, "--require-walls takes all, not 'none'"},
      {{"--server=judge:7400", "--allow-unsandboxed", "--require-wall=uid"}, "no wall to require"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(ParseWorkerOptions(c.arguments),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.want)));
  }
}

TEST(WorkerOptionsTest, RequiresWalls) {
  const std::vector<std::string> defaults = DefaultRequiredWalls(geteuid() == 0);
  ASSERT_OK_AND_ASSIGN(WorkerOptions options, ParseWorkerOptions({"--server=judge:7400"}));
  EXPECT_THAT(options.required_walls, UnorderedElementsAreArray(defaults));
  ASSERT_OK_AND_ASSIGN(options, ParseWorkerOptions({"--server=judge:7400", "--require-wall",
                                                    "cgroup-memory", "--require-wall=seccomp"}));
  std::vector<std::string> more = defaults;
  more.push_back("cgroup-memory");
  EXPECT_THAT(options.required_walls, UnorderedElementsAreArray(more));
  ASSERT_OK_AND_ASSIGN(options,
                       ParseWorkerOptions({"--server=judge:7400", "--require-walls", "all"}));
  EXPECT_THAT(options.required_walls, UnorderedElementsAreArray(AllWalls()));
  ASSERT_OK_AND_ASSIGN(options, ParseWorkerOptions({"--server=judge:7400", "--allow-unsandboxed"}));
  EXPECT_TRUE(options.required_walls.empty());
}

TEST(WorkerOptionsTest, TakesDevices) {
  const struct {
    std::string value;
    WorkerDevice::Kind kind;
    int arch;
    int ordinal;
  } cases[] = {
      {"cpu", WorkerDevice::Kind::kCpu, 0, 0},
      {"emulated:sm_90", WorkerDevice::Kind::kEmulated, 90, 0},
      {"cuda", WorkerDevice::Kind::kCuda, 0, 0},
      {"cuda:3", WorkerDevice::Kind::kCuda, 0, 3},
  };
  for (const auto& c : cases) {
    ASSERT_OK_AND_ASSIGN(const WorkerOptions options,
                         ParseWorkerOptions({"--server=judge:7400", "--device", c.value}));
    EXPECT_EQ(options.device.kind, c.kind) << c.value;
    EXPECT_EQ(options.device.arch, c.arch) << c.value;
    EXPECT_EQ(options.device.ordinal, c.ordinal) << c.value;
  }
}

}  // namespace
}  // namespace assay
