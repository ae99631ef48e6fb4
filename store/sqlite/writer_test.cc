#include "store/sqlite/writer.h"

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "base/file.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"

namespace assay {
namespace {

// Inserts its values one by one; a value that is there already fails after the others were written.
class Insert : public WriteOperation {
 public:
  Insert(std::vector<int> values, std::function<void(absl::Status)> done)
      : values_(std::move(values)), done_(std::move(done)) {}
  absl::Status Apply(WriteContext& context) override {
    for (const int value : values_) {
      ASSAY_ASSIGN_OR_RETURN(ScopedStatement insert,
                             context.db.Cached("INSERT INTO numbers (value) VALUES (?1)"));
      insert->BindInt(1, value);
      ASSAY_RETURN_IF_ERROR(insert->Run());
    }
    return absl::OkStatus();
  }
  void Finish(const absl::Status& status) override { done_(status); }

 private:
  const std::vector<int> values_;
  const std::function<void(absl::Status)> done_;
};

// Executes any SQL.
class Raw : public WriteOperation {
 public:
  Raw(std::string sql, std::function<void(absl::Status)> done)
      : sql_(std::move(sql)), done_(std::move(done)) {}
  absl::Status Apply(WriteContext& context) override { return context.db.Execute(sql_); }
  void Finish(const absl::Status& status) override { done_(status); }

 private:
  const std::string sql_;
  const std::function<void(absl::Status)> done_;
};

class WriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto db = Connection::Open(path(), Connection::Role::kWriter);
    ASSERT_OK(db);
    ASSERT_OK((*db)->Execute("CREATE TABLE numbers (value INTEGER PRIMARY KEY) STRICT"));
    Writer::Options options;
    // The first group waits, so that everything after it comes into the second.
    options.before_group = [this](Connection&) {
      if (groups_++ != 0) return;
      stuck_.Notify();
      release_.WaitForNotification();
    };
    writer_ = std::make_unique<Writer>(*std::move(db), options);
    writer_->Enqueue(std::make_unique<Insert>(std::vector<int>{0}, [](absl::Status) {}));
    stuck_.WaitForNotification();
  }
  std::string path() const { return directory_.path() + "/test.db"; }
  void Add(std::unique_ptr<WriteOperation> operation) { writer_->Enqueue(std::move(operation)); }
  std::function<void(absl::Status)> Note(std::string name) {
    return [this, name = std::move(name)](const absl::Status& status) {
      log_.push_back(absl::StrCat(name, " ", status.ok() ? "ok" : GetReason(status)));
    };
  }
  int64_t Count() {
    auto db = Connection::Open(path(), Connection::Role::kReader);
    return *(*db)->QueryInt("SELECT COUNT(*) FROM numbers");
  }

  TemporaryDirectory directory_ = *TemporaryDirectory::Create("assay-writer");
  int groups_ = 0;
  absl::Notification stuck_;
  absl::Notification release_;
  std::vector<std::string> log_;
  std::unique_ptr<Writer> writer_;
};

TEST_F(WriterTest, AnOperationThatFailsAfterWritingLeavesItsNeighboursWhole) {
  Add(std::make_unique<Insert>(std::vector<int>{1, 2}, Note("a")));
  Add(std::make_unique<Insert>(std::vector<int>{3, 4, 1}, Note("b")));
  Add(std::make_unique<Insert>(std::vector<int>{3, 5}, Note("c")));
  Add(std::make_unique<Insert>(std::vector<int>{6, 6}, Note("d")));
  Add(std::make_unique<Insert>(std::vector<int>{4}, Note("e")));
  release_.Notify();
  writer_->Stop();
  EXPECT_THAT(log_, ::testing::ElementsAre("a ok", "b STORAGE_CONSTRAINT", "c ok",
                                           "d STORAGE_CONSTRAINT", "e ok"));
  EXPECT_EQ(groups_, 2);
  EXPECT_EQ(Count(), 1 + 2 + 2 + 1);
}

TEST_F(WriterTest, AFailureOfTheTransactionFailsTheWholeGroupAndNothingElse) {
  Add(std::make_unique<Insert>(std::vector<int>{1}, Note("a")));
  // As SQLite itself does after an I/O error: the transaction is gone.
  Add(std::make_unique<Raw>("ROLLBACK; SELECT * FROM no_such_table", Note("b")));
  Add(std::make_unique<Insert>(std::vector<int>{2}, Note("c")));
  release_.Notify();
  writer_->Shutdown();
  EXPECT_THAT(log_,
              ::testing::ElementsAre("a STORAGE_FAILED", "b STORAGE_FAILED", "c STORAGE_FAILED"));
  EXPECT_EQ(Count(), 1);
}

TEST_F(WriterTest, TheWriterGoesOnAfterAFailedGroup) {
  Add(std::make_unique<Raw>("SELECT * FROM no_such_table", Note("a")));
  absl::Notification failed;
  Add(std::make_unique<Raw>("SELECT 1", [&](absl::Status status) {
    EXPECT_EQ(GetReason(status), "STORAGE_FAILED") << "one group with the failed one";
    failed.Notify();
  }));
  release_.Notify();
  failed.WaitForNotification();
  Add(std::make_unique<Insert>(std::vector<int>{7}, Note("b")));
  writer_->Stop();
  EXPECT_THAT(log_, ::testing::ElementsAre("a STORAGE_FAILED", "b ok"));
  EXPECT_EQ(Count(), 2);
}

}  // namespace
}  // namespace assay
