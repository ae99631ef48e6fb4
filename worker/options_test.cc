#include "worker/options.h"

#include "base/test_matchers.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

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
  };
  for (const auto& c : cases) {
    EXPECT_THAT(ParseWorkerOptions(c.arguments),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.want)));
  }
}

}  // namespace
}  // namespace assay
