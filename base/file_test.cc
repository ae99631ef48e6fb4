#include "base/file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/log.h"
#include "base/test_matchers.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

TEST(File, WritesAtomicallyAndReadsWithACap) {
  ASSERT_OK_AND_ASSIGN(auto directory, TemporaryDirectory::Create("assay-file-test"));
  const std::string path = directory.path() + "/a";
  ASSERT_OK(WriteFileAtomically(path, "hello"));
  ASSERT_OK(WriteFileAtomically(path, "hello!"));
  ASSERT_OK_AND_ASSIGN(const std::string bytes, ReadFile(path, 6));
  EXPECT_EQ(bytes, "hello!");
  EXPECT_THAT(ReadFile(path, 5), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(ReadFile(directory.path() + "/b", 5), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 1);
}

TEST(File, RefusesWhatIsNotARegularFile) {
  ASSERT_OK_AND_ASSIGN(auto directory, TemporaryDirectory::Create("assay-file-test"));
  const std::string fifo = directory.path() + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_THAT(ReadFile(fifo, 10), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ReadFile(directory.path(), 10), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(File, TemporaryDirectoryIsRemoved) {
  std::string path;
  {
    ASSERT_OK_AND_ASSIGN(auto directory, TemporaryDirectory::Create("assay-file-test"));
    path = directory.path();
    ASSERT_OK(WriteFileAtomically(path + "/x", "1"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Log, EscapesHostileText) {
  EXPECT_EQ(LogEscape("a\nb"), "a\\nb");
  EXPECT_EQ(LogEscape("a b"), "\"a b\"");
  EXPECT_EQ(LogEscape("\x1b[31m").find('\x1b'), std::string::npos);
  EXPECT_LT(LogEscape(std::string(100000, 'x')).size(), 1000u);
}

}  // namespace
}  // namespace assay
