#include "client/cli/progress.h"

#include <sstream>

#include "gtest/gtest.h"

namespace assay {
namespace {

TEST(Progress, RewritesItsLineAndClearsItAtTheEnd) {
  std::ostringstream out;
  {
    Progress progress(out, true);
    progress.Show("a");
    progress.Show("a");
    progress.Show("b");
  }
  EXPECT_EQ(out.str(), "\r\x1b[Ka\r\x1b[Kb\r\x1b[K");
}

TEST(Progress, IsSilentElsewhere) {
  std::ostringstream out;
  {
    Progress progress(out, false);
    progress.Show("a");
  }
  EXPECT_EQ(out.str(), "");
}

}  // namespace
}  // namespace assay
