#include "base/cpu_caches.h"

#include <gtest/gtest.h>

#include <string>

#include "base/file.h"

namespace assay {
namespace {

TEST(CpuCachesTest, ReadsDataCaches) {
  const absl::StatusOr<TemporaryDirectory> root = TemporaryDirectory::Create("cpu-caches-test");
  ASSERT_TRUE(root.ok()) << root.status();
  const std::string cache = root->path() + "/sys/devices/system/cpu/cpu0/cache";
  const struct {
    const char* index;
    const char* level;
    const char* type;
    const char* size;
  } rows[] = {{"0", "1", "Data", "32K\n"},
              {"1", "1", "Instruction", "64K\n"},
              {"2", "2", "Unified", "512K\n"},
              {"3", "3", "Unified", "8M\n"}};
  for (const auto& row : rows) {
    const std::string folder = cache + "/index" + row.index;
    ASSERT_TRUE(CreateDirectories(folder).ok());
    ASSERT_TRUE(WriteFileAtomically(folder + "/level", row.level).ok());
    ASSERT_TRUE(WriteFileAtomically(folder + "/type", row.type).ok());
    ASSERT_TRUE(WriteFileAtomically(folder + "/size", row.size).ok());
  }
  const CpuCaches caches = ReadCpuCaches(root->path());
  EXPECT_EQ(caches.l1_bytes, 32 << 10);
  EXPECT_EQ(caches.l2_bytes, 512 << 10);
  EXPECT_EQ(caches.l3_bytes, 8 << 20);
}

TEST(CpuCachesTest, TakesWhatTheKernelTellsOfThisMachine) {
  const CpuCaches caches = ReadCpuCaches("");
  if (caches.l3_bytes > 0) {
    EXPECT_EQ(LastLevelCacheBytes(), static_cast<size_t>(caches.l3_bytes));
  }
  EXPECT_GE(LastLevelCacheBytes(), size_t{32} << 10);
}

}  // namespace
}  // namespace assay
