#include "store/sqlite/wal_reserve.h"

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "store/sqlite/writer.h"

namespace assay {
namespace {

constexpr int64_t kTargetBytes = 40 << 20;  // not a whole number of pieces

class WalReserveTest : public ::testing::Test {
 protected:
  std::string path() const { return directory_.path() + "/test.db"; }
  int64_t WalBytes() const {
    std::error_code error;
    return static_cast<int64_t>(std::filesystem::file_size(path() + "-wal", error));
  }
  std::unique_ptr<Connection> OpenWriter(const std::string& path) {
    auto db = Connection::Open(path, Connection::Role::kWriter);
    EXPECT_OK(db);
    return *std::move(db);
  }
  // As a crash leaves the files: the database of `path` with its WAL, under another name.
  std::string CopyFiles() const {
    const std::string copy = directory_.path() + "/copy.db";
    for (const char* suffix : {"", "-wal"}) {
      std::filesystem::copy_file(path() + suffix, copy + suffix);
    }
    return copy;
  }

  TemporaryDirectory directory_ = *TemporaryDirectory::Create("assay-wal");
};

TEST_F(WalReserveTest, RecoveryFindsWhatWasCommittedBeforeAndAfterAndNothingElse) {
  std::unique_ptr<Connection> db = OpenWriter(path());
  ASSERT_OK(db->Execute("CREATE TABLE numbers (value INTEGER PRIMARY KEY) STRICT"));
  ASSERT_OK(db->Execute("INSERT INTO numbers (value) VALUES (1), (2)"));
  ASSERT_OK(ReserveWal(*db, kTargetBytes, [] { return true; }));
  EXPECT_EQ(WalBytes(), kTargetBytes);
  ASSERT_OK(db->Execute("INSERT INTO numbers (value) VALUES (3)"));
  EXPECT_EQ(WalBytes(), kTargetBytes) << "commits go into the reserve";
  ASSERT_OK(ReserveWal(*db, kTargetBytes / 2, [] { return true; }));
  EXPECT_EQ(WalBytes(), kTargetBytes) << "a reserve never shortens";

  std::unique_ptr<Connection> copy = OpenWriter(CopyFiles());
  EXPECT_EQ(*copy->QueryInt("SELECT group_concat(value, '') FROM numbers"), 123);
  EXPECT_EQ(*copy->QueryInt("SELECT COUNT(*) FROM pragma_integrity_check WHERE integrity_check"
                            " = 'ok'"),
            1);
}

TEST_F(WalReserveTest, StopsBetweenPiecesWhenItIsTold) {
  std::unique_ptr<Connection> db = OpenWriter(path());
  ASSERT_OK(db->Execute("CREATE TABLE numbers (value INTEGER PRIMARY KEY) STRICT"));
  int asked = 0;
  ASSERT_OK(ReserveWal(*db, kTargetBytes, [&] { return ++asked <= 1; }));
  EXPECT_EQ(asked, 2);
  EXPECT_LT(WalBytes(), kTargetBytes);
  EXPECT_GT(WalBytes(), 16 << 20);
}

TEST_F(WalReserveTest, NeedsAnAmplyFreeDisk) {
  std::unique_ptr<Connection> db = OpenWriter(path());
  ASSERT_OK(db->Execute("CREATE TABLE numbers (value INTEGER PRIMARY KEY) STRICT"));
  const int64_t before = WalBytes();
  EXPECT_THAT(ReserveWal(*db, int64_t{1} << 60, [] { return true; }),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(WalBytes(), before);
}

// Inserts a row that fills pages of its own.
class InsertPages : public WriteOperation {
 public:
  InsertPages(int pages, absl::Notification* done) : pages_(pages), done_(done) {}
  absl::Status Apply(WriteContext& context) override {
    return context.db.Execute(
        absl::StrCat("INSERT INTO pages (content) VALUES (zeroblob(8000 * ", pages_, "))"));
  }
  void Finish(const absl::Status& status) override {
    EXPECT_OK(status);
    done_->Notify();
  }

 private:
  const int pages_;
  absl::Notification* const done_;
};

class WalBoundTest : public WalReserveTest {
 protected:
  static constexpr int kCheckpointFrames = 32;
  void StartWriter(int checkpoint_frames = kCheckpointFrames) {
    std::unique_ptr<Connection> db = OpenWriter(path());
    ASSERT_OK(db->Execute("CREATE TABLE pages (content BLOB NOT NULL) STRICT"));
    Writer::Options options;
    options.checkpoint_frames = checkpoint_frames;
    options.reserve_wal = true;
    options.on_commit = [this](size_t operations, absl::Duration commit) {
      EXPECT_EQ(operations, 1u);
      EXPECT_GT(commit, absl::ZeroDuration());
      ++commits_;
    };
    writer_ = std::make_unique<Writer>(std::move(db), options);
  }
  void Write(int count, int pages = 1) {
    for (int i = 0; i < count; ++i) {
      absl::Notification done;
      writer_->Enqueue(std::make_unique<InsertPages>(pages, &done));
      done.WaitForNotification();
    }
  }
  int64_t WalFrames() const { return WalBytes() / (8192 + 24); }

  int commits_ = 0;
  std::unique_ptr<Writer> writer_;
};

TEST_F(WalBoundTest, CheckpointsKeepTheWalAtItsSize) {
  StartWriter();
  Write(400);
  writer_->Shutdown();
  EXPECT_EQ(commits_, 400);
  EXPECT_GE(WalFrames(), kCheckpointFrames);
  EXPECT_LT(WalFrames(), 2 * kCheckpointFrames) << "it starts over after each checkpoint";
}

TEST_F(WalBoundTest, ABusyWriterReservesWhenItFallsIdle) {
  constexpr int kFrames = 4096;
  StartWriter(kFrames);
  Write(1, /*pages=*/1100);
  EXPECT_LT(WalFrames(), 1200);
  const absl::Duration end = SystemClock()->Monotonic() + absl::Seconds(60);
  while (WalFrames() < kFrames && SystemClock()->Monotonic() < end) std::this_thread::yield();
  EXPECT_GE(WalFrames(), kFrames);
  Write(10, /*pages=*/100);
  writer_->Shutdown();
  EXPECT_LT(WalFrames(), kFrames + kFrames / 8);
}

TEST_F(WalBoundTest, ReadersThatOverlapForEverDoNotLetItGrow) {
  StartWriter();
  Write(1);
  std::atomic<bool> stop = false;
  // There is always a reader, but none stays.
  std::thread readers([&] {
    std::unique_ptr<Connection> open;
    while (!stop) {
      auto next = Connection::Open(path(), Connection::Role::kReader);
      ASSERT_OK(next);
      ASSERT_OK((*next)->Execute("BEGIN"));
      ASSERT_OK((*next)->QueryInt("SELECT COUNT(*) FROM pages"));
      open = *std::move(next);
    }
  });
  Write(250);  // more than 500 frames
  stop = true;
  readers.join();
  writer_->Shutdown();
  EXPECT_LT(WalFrames(), 8 * kCheckpointFrames);
}

}  // namespace
}  // namespace assay
