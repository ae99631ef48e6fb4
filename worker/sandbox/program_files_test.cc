#include "worker/sandbox/program_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/test_matchers.h"
#include "gtest/gtest.h"
#include "worker/sandbox/openblas.h"

namespace assay {
namespace {

using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

std::string Guest() {
  const char* dir = std::getenv("ASSAY_BIN_DIR");
  return absl::StrCat(dir == nullptr ? "bin" : dir, "/assay-guest");
}

bool IsFile(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

TEST(ProgramFilesTest, HasTheLoaderAndTheRuntimeAndNoFolder) {
  ASSERT_OK_AND_ASSIGN(const auto binds, ProgramFiles(Guest(), {}));
  for (const char* name : {"/libc.so.6", "/libm.so.6", "/libstdc++.so.6", "/libgcc_s.so.1"}) {
    EXPECT_THAT(binds, Contains(Pair(::testing::_, EndsWith(name))));
  }
  EXPECT_THAT(binds, Contains(Pair(::testing::_, HasSubstr("/ld-linux"))));
  for (const auto& [outside, inside] : binds) {
    EXPECT_TRUE(IsFile(outside)) << outside;
    EXPECT_THAT(inside, Not(HasSubstr("blas")));
  }
}

TEST(ProgramFilesTest, ALibraryComesWithWhatItIsLinkedWith) {
  const auto folders = FindOpenblas("");
  if (!folders.has_value()) GTEST_SKIP() << "libopenblas-dev is not installed";
  ASSERT_OK_AND_ASSIGN(const auto plain, ProgramFiles(Guest(), {}));
  ASSERT_OK_AND_ASSIGN(const auto binds, ProgramFiles(Guest(), {kOpenblasLibrary}));
  EXPECT_THAT(binds, Contains(Pair(::testing::_, folders->library)));
  // The folder alone is one more.
  EXPECT_GT(binds.size(), plain.size() + 1);
}

TEST(ProgramFilesTest, AnUnknownLibraryAddsNothing) {
  ASSERT_OK_AND_ASSIGN(const auto plain, ProgramFiles(Guest(), {}));
  ASSERT_OK_AND_ASSIGN(const auto binds, ProgramFiles(Guest(), {"/etc", "../x", "z"}));
  EXPECT_EQ(binds, plain);
}

TEST(ProgramFilesTest, ANeedThatIsNowhereIsTheMachines) {
  ASSERT_OK_AND_ASSIGN(TemporaryDirectory directory, TemporaryDirectory::Create("program-files"));
  ASSERT_OK_AND_ASSIGN(std::string bytes, ReadFile(Guest(), 64 << 20));
  const std::string_view name = "libstdc++.so.6";
  // Names of libraries stand there once or twice; each becomes one that nobody has.
  size_t changed = 0;
  for (size_t at = bytes.find(name); at != std::string::npos; at = bytes.find(name, at + 1)) {
    bytes[at + 3] = '_';
    ++changed;
  }
  ASSERT_GT(changed, 0u);
  const std::string path = directory.path() + "/guest";
  ASSERT_OK(WriteFileAtomically(path, bytes));
  EXPECT_THAT(ProgramFiles(path, {}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("needs lib_tdc++.so.6")));
}

}  // namespace
}  // namespace assay
