// A full disk: the group fails with STORAGE_FULL, nothing acknowledged is lost, and the store works
// again when there is room.
#include <sys/mount.h>
#include <unistd.h>

#include <atomic>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "store/sqlite/sqlite_store.h"
#include "store/sqlite/sqlite_store_internal.h"
#include "store/testing/builders.h"

namespace assay {
namespace {

using ::assay::testing::CreateOne;
using ::assay::testing::CreateProblem;
using ::assay::testing::MakeEvaluation;
using ::assay::testing::MakeProblem;

NewEvaluation Large(int number) {
  NewEvaluation evaluation = MakeEvaluation(absl::StrCat("e", number), absl::StrCat("c", number));
  evaluation.candidate->mutable_files(0)->set_content(std::string(20'000, 'x'));
  return evaluation;
}

// Creates until the disk is full, at most `count` times; the names that were acknowledged.
std::set<std::string> CreateUntilFull(Store& store, int* number, int count, bool* full) {
  std::set<std::string> acknowledged;
  *full = false;
  for (int i = 0; i < count && !*full; ++i) {
    const auto created = CreateOne(store, Large((*number)++));
    if (created.ok()) {
      acknowledged.insert(created->evaluation.name());
    } else {
      EXPECT_THAT(created, ::testing::AllOf(StatusIs(absl::StatusCode::kResourceExhausted),
                                            HasReason("STORAGE_FULL")));
      *full = true;
    }
  }
  return acknowledged;
}

void ExpectAll(Store& store, const std::set<std::string>& names) {
  for (const std::string& name : names) EXPECT_OK(store.GetEvaluation(name, false)) << name;
}

TEST(StorageFullTest, ByPageLimit) {
  const TemporaryDirectory directory = *TemporaryDirectory::Create("assay-full");
  std::atomic<int> pages_max = 200;
  Writer::Options options;
  options.before_group = [&](Connection& db) {
    EXPECT_OK(db.Execute(absl::StrCat("PRAGMA max_page_count = ", pages_max.load())));
  };
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Store> store,
                       OpenSqliteStoreWith({.directory = directory.path()}, options));
  ASSERT_OK(CreateProblem(*store, MakeProblem("gelu")));
  int number = 0;
  bool full = false;
  std::set<std::string> acknowledged = CreateUntilFull(*store, &number, 1000, &full);
  ASSERT_TRUE(full);
  EXPECT_GT(acknowledged.size(), 10u);
  ExpectAll(*store, acknowledged);
  EXPECT_THAT(CreateOne(*store, Large(number++)), HasReason("STORAGE_FULL")) << "still full";

  pages_max = 100'000;
  const std::set<std::string> later = CreateUntilFull(*store, &number, 20, &full);
  EXPECT_FALSE(full);
  EXPECT_EQ(later.size(), 20u);
  acknowledged.insert(later.begin(), later.end());
  ExpectAll(*store, acknowledged);
  EXPECT_EQ(store->ListEvaluations({}, {1000, ""})->items.size(), acknowledged.size());

  store.reset();
  ASSERT_OK_AND_ASSIGN(store, OpenSqliteStore({.directory = directory.path()}));
  ExpectAll(*store, acknowledged);
}

// A small file system of its own.
class TmpfsMount {
 public:
  explicit TmpfsMount(const std::string& path) : path_(path) {
    mounted_ = mount("tmpfs", path.c_str(), "tmpfs", 0, "size=4m") == 0;
  }
  ~TmpfsMount() {
    if (mounted_) umount2(path_.c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }

 private:
  const std::string path_;
  bool mounted_;
};

TEST(StorageFullTest, ByFileSystem) {
  const TemporaryDirectory directory = *TemporaryDirectory::Create("assay-full");
  const TmpfsMount tmpfs(directory.path());
  if (!tmpfs.mounted()) GTEST_SKIP() << "needs the right to mount a tmpfs";
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Store> store,
                       OpenSqliteStore({.directory = directory.path() + "/data"}));
  ASSERT_OK(CreateProblem(*store, MakeProblem("gelu")));
  const std::string ballast = directory.path() + "/ballast";
  ASSERT_OK(WriteFileAtomically(ballast, std::string(2 << 20, 'x')));
  int number = 0;
  bool full = false;
  std::set<std::string> acknowledged = CreateUntilFull(*store, &number, 1000, &full);
  ASSERT_TRUE(full);
  EXPECT_GT(acknowledged.size(), 10u);
  ExpectAll(*store, acknowledged);

  ASSERT_EQ(unlink(ballast.c_str()), 0);
  const std::set<std::string> later = CreateUntilFull(*store, &number, 20, &full);
  EXPECT_FALSE(full);
  acknowledged.insert(later.begin(), later.end());
  ExpectAll(*store, acknowledged);

  // Full once more, and then the server ends and starts on the full disk: nothing is lost.
  const std::set<std::string> last = CreateUntilFull(*store, &number, 1000, &full);
  ASSERT_TRUE(full);
  acknowledged.insert(last.begin(), last.end());
  EXPECT_THAT(store->PublishCopy(directory.path() + "/copy.db"), HasReason("STORAGE_FULL"));
  store.reset();
  ASSERT_OK_AND_ASSIGN(store, OpenSqliteStore({.directory = directory.path() + "/data"}));
  ExpectAll(*store, acknowledged);
}

}  // namespace
}  // namespace assay
