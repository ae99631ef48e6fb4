#include "store/sqlite/sqlite_store.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "base/file.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "store/sqlite/connection.h"
#include "store/sqlite/migrate.h"
#include "store/sqlite/sqlite_store_internal.h"
#include "store/testing/builders.h"

namespace assay {
namespace {

using ::assay::testing::Await;
using ::assay::testing::CreateOne;
using ::assay::testing::CreateProblem;
using ::assay::testing::MakeCompletion;
using ::assay::testing::MakeEvaluation;
using ::assay::testing::MakeOutcome;
using ::assay::testing::MakeProblem;
using ::assay::testing::RunEvaluation;

class SqliteStoreTest : public ::testing::Test {
 protected:
  std::string data() const { return directory_.path() + "/data"; }
  std::unique_ptr<Store> Open(Writer::Options options = {}) {
    auto store = OpenSqliteStoreWith({.directory = data()}, std::move(options));
    EXPECT_OK(store);
    return *std::move(store);
  }
  // A look at the files from outside.
  std::unique_ptr<Connection> Look(const std::string& path) {
    auto db = Connection::Open(path, Connection::Role::kReader);
    EXPECT_OK(db);
    return *std::move(db);
  }

  TemporaryDirectory directory_ = *TemporaryDirectory::Create("assay-sqlite");
};

TEST_F(SqliteStoreTest, OneServerHasTheDataFolder) {
  std::unique_ptr<Store> store = Open();
  EXPECT_THAT(OpenSqliteStore({.directory = data()}),
              ::testing::AllOf(
                  StatusIs(absl::StatusCode::kFailedPrecondition, ::testing::HasSubstr(data())),
                  HasReason("DATA_FOLDER_IN_USE")));
  store.reset();
  EXPECT_OK(OpenSqliteStore({.directory = data()}));
}

TEST_F(SqliteStoreTest, ASecondProcessIsRefusedToo) {
  std::unique_ptr<Store> store = Open();
  const pid_t child = fork();
  if (child == 0) {
    auto second = OpenSqliteStore({.directory = data()});
    _exit(GetReason(second.status()) == "DATA_FOLDER_IN_USE" ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(SqliteStoreTest, WhatIsNoDatabaseIsRefused) {
  ASSERT_OK(CreateDirectories(data()));
  ASSERT_OK(WriteFileAtomically(DatabasePath(data()), std::string(8192, 'x')));
  EXPECT_THAT(
      OpenSqliteStore({.directory = data()}),
      ::testing::AllOf(StatusIs(absl::StatusCode::kDataLoss), HasReason("STORAGE_CORRUPT")));
  ASSERT_OK(WriteFileAtomically(directory_.path() + "/file", "x"));
  EXPECT_FALSE(OpenSqliteStore({.directory = directory_.path() + "/file"}).ok());
}

TEST_F(SqliteStoreTest, TheWriterIsDurableAndKeepsReferences) {
  std::vector<std::string> seen;
  Writer::Options options;
  options.before_group = [&](Connection& db) {
    for (const char* pragma : {"synchronous", "foreign_keys", "wal_autocheckpoint"}) {
      seen.push_back(absl::StrCat(pragma, " ", *db.QueryInt(absl::StrCat("PRAGMA ", pragma))));
    }
  };
  std::unique_ptr<Store> store = Open(std::move(options));
  ASSERT_OK(CreateProblem(*store, MakeProblem("gelu")));
  // 2 is FULL.
  EXPECT_THAT(seen,
              ::testing::ElementsAre("synchronous 2", "foreign_keys 1", "wal_autocheckpoint 0"));
}

TEST_F(SqliteStoreTest, ReadersCannotWrite) {
  std::unique_ptr<Store> store = Open();
  auto reader = Look(DatabasePath(data()));
  EXPECT_FALSE(reader->Execute("DELETE FROM problems").ok());
}

TEST_F(SqliteStoreTest, WaitingWritesShareATransaction) {
  std::atomic<int> groups = 0;
  absl::Notification stuck;
  absl::Notification release;
  Writer::Options options;
  options.before_group = [&](Connection&) {
    if (++groups != 2) return;
    stuck.Notify();
    release.WaitForNotification();
  };
  std::unique_ptr<Store> store = Open(std::move(options));
  ASSERT_OK(CreateProblem(*store, MakeProblem("gelu")));
  constexpr int kCount = 200;
  absl::BlockingCounter left(kCount);
  for (int i = 0; i < kCount; ++i) {
    std::vector<NewEvaluation> one;
    one.push_back(MakeEvaluation(absl::StrCat("e", i)));
    store->CreateEvaluations(std::move(one), [&](auto created) {
      EXPECT_OK(created);
      left.DecrementCount();
    });
    // The first stands alone in the second group; the others gather behind it.
    if (i == 0) stuck.WaitForNotification();
  }
  // Reads go on while the writer is stuck.
  EXPECT_OK(store->GetProblem("problems/gelu", 0));
  EXPECT_THAT(store->GetEvaluation("evaluations/e0", false), HasReason("EVALUATION_NOT_FOUND"));
  release.Notify();
  left.Wait();
  EXPECT_EQ(groups, 3);
}

TEST_F(SqliteStoreTest, TooManyWaitingCreationsAreRefused) {
  std::atomic<bool> first = true;
  absl::Notification stuck;
  absl::Notification release;
  Writer::Options options;
  options.before_group = [&](Connection&) {
    if (!first.exchange(false)) return;
    stuck.Notify();
    release.WaitForNotification();
  };
  std::unique_ptr<Store> store = Open(std::move(options));
  std::atomic<int> refused = 0;
  std::atomic<int> accepted = 0;
  // Candidates of 8 MiB pass the limit in bytes after a few dozen.
  constexpr int kCount = 40;
  absl::BlockingCounter left(kCount + 1);
  const auto count = [&](const absl::Status& status) {
    status.ok() ? ++accepted : ++refused;
    EXPECT_EQ(GetReason(status), status.ok() ? "" : "STORE_OVERLOADED");
    left.DecrementCount();
  };
  store->RecordWorker(v1::Worker(), [&](auto result) { count(result.status()); });
  stuck.WaitForNotification();
  const std::string big(8 << 20, 'x');
  for (int i = 0; i < kCount; ++i) {
    v1::Candidate candidate = assay::testing::MakeCandidate(absl::StrCat("c", i));
    candidate.mutable_files(0)->set_content(big);
    store->CreateCandidate(std::move(candidate), "", [&](auto result) { count(result.status()); });
  }
  release.Notify();
  left.Wait();
  EXPECT_EQ(accepted, 1 + 31);
  EXPECT_EQ(refused, kCount - 31);
}

TEST_F(SqliteStoreTest, SamplesStandApartAsDoubles) {
  std::unique_ptr<Store> store = Open();
  ASSERT_OK(CreateProblem(*store, MakeProblem("gelu")));
  ASSERT_OK(RunEvaluation(*store, MakeEvaluation("e1"),
                          MakeCompletion("e1", 1, MakeOutcome("small", 100))));
  auto db = Look(DatabasePath(data()));
  // Two runners with five warm samples each.
  EXPECT_EQ(*db->QueryInt("SELECT SUM(LENGTH(warm_ns)) FROM samples"), 2 * 5 * 8);
  EXPECT_EQ(*db->QueryInt("SELECT COUNT(*) FROM logs"), 1);
  const int64_t row_bytes = *db->QueryInt("SELECT LENGTH(proto) FROM evaluations");
  v1::Outcome large = MakeOutcome("small", 100);
  for (int i = 0; i < 1000; ++i) {
    large.mutable_workload_results(0)->mutable_measurement()->mutable_runners(0)->add_warm_ns(i);
  }
  large.set_output_log(std::string(1 << 20, 'x'));
  ASSERT_OK(RunEvaluation(*store, MakeEvaluation("e2"), MakeCompletion("e2", 1, large)));
  EXPECT_EQ(*db->QueryInt("SELECT LENGTH(proto) FROM evaluations WHERE name = 'evaluations/e2'"),
            row_bytes);
}

TEST_F(SqliteStoreTest, CalibrationsAreKeptForEver) {
  std::unique_ptr<Store> store = Open();
  v1::Worker worker;
  worker.set_name("workers/w1");
  v1::Calibration* calibration = worker.add_devices()->mutable_calibration();
  for (const char* name : {"a", "b", "a"}) {
    calibration->set_name(name);
    ASSERT_OK(Await<bool>([&](auto done) { store->RecordWorker(worker, std::move(done)); }));
  }
  EXPECT_EQ(*Look(DatabasePath(data()))->QueryInt("SELECT COUNT(*) FROM calibrations"), 2);
}

TEST_F(SqliteStoreTest, TheWalStaysBoundedAndTheWriterAloneCheckpoints) {
  Writer::Options options;
  options.checkpoint_frames = 64;
  std::unique_ptr<Store> store = Open(std::move(options));
  ASSERT_OK(CreateProblem(*store, MakeProblem("gelu")));
  const std::string wal = DatabasePath(data()) + "-wal";
  for (int i = 0; i < 200; ++i) {
    ASSERT_OK(CreateOne(*store, MakeEvaluation(absl::StrCat("e", i), absl::StrCat("c", i))));
    ASSERT_OK(store->GetEvaluation(absl::StrCat("evaluations/e", i), false));
  }
  // A group adds some ten frames of 8 KiB to at most 64; without checkpoints there would be 2000.
  EXPECT_LT(std::filesystem::file_size(wal), 150u * 8192);
  store.reset();
  EXPECT_FALSE(std::filesystem::exists(wal)) << "a clean end leaves one file";
}

TEST_F(SqliteStoreTest, APublishedCopyIsConsistentAndStandsAlone) {
  std::unique_ptr<Store> store = Open();
  ASSERT_OK(CreateProblem(*store, MakeProblem("gelu")));
  const std::string copy = directory_.path() + "/published.db";
  std::atomic<bool> stop = false;
  // Evaluations come in pairs; a consistent copy never holds half of one.
  std::thread writer([&] {
    for (int i = 0; !stop; ++i) {
      std::vector<NewEvaluation> pair;
      pair.push_back(MakeEvaluation(absl::StrCat("e", i, "a"), absl::StrCat("c", i)));
      pair.push_back(MakeEvaluation(absl::StrCat("e", i, "b"), absl::StrCat("c", i)));
      EXPECT_OK(assay::testing::CreateEvaluations(*store, std::move(pair)));
    }
  });
  int64_t before = -1;
  for (int round = 0; round < 10; ++round) {
    ASSERT_OK(store->PublishCopy(copy));
    auto published = Look(copy);
    ASSERT_OK_AND_ASSIGN(Statement mode, published->Prepare("PRAGMA journal_mode"));
    ASSERT_TRUE(*mode.Step());
    EXPECT_EQ(mode.Text(0), "delete");
    const int64_t count = *published->QueryInt("SELECT COUNT(*) FROM evaluations");
    EXPECT_EQ(count % 2, 0);
    EXPECT_GE(count, before);
    before = count;
    ASSERT_OK_AND_ASSIGN(Statement check, published->Prepare("PRAGMA integrity_check"));
    ASSERT_TRUE(*check.Step());
    EXPECT_EQ(check.Text(0), "ok");
  }
  stop = true;
  writer.join();
  // Nothing is left beside the copy.
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory_.path())) {
    files.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(files, ::testing::UnorderedElementsAre("data", "published.db"));
}

TEST_F(SqliteStoreTest, AFailedPublicationKeepsTheOldCopy) {
  std::unique_ptr<Store> store = Open();
  EXPECT_FALSE(store->PublishCopy(directory_.path() + "/none/published.db").ok());
  const std::string copy = directory_.path() + "/published.db";
  ASSERT_OK(store->PublishCopy(copy));
  // The temporary name is taken by a folder.
  ASSERT_EQ(mkdir((copy + ".tmp").c_str(), 0755), 0);
  EXPECT_FALSE(store->PublishCopy(copy).ok());
  EXPECT_EQ(*Look(copy)->QueryInt("PRAGMA user_version"), Migrations().back().version);
}

v1::AccessEvent Event(const std::string& method) {
  v1::AccessEvent event;
  event.set_method(method);
  return event;
}

TEST_F(SqliteStoreTest, ThePublishedCopyHasNoTokensAndNoAccessEvents) {
  std::unique_ptr<Store> store = Open();
  StoredToken token;
  token.token.set_name("tokens/ci-of-the-secret-team");
  token.digest = "digest-that-stays-here";
  ASSERT_OK(Await<v1::Token>([&](auto done) { store->CreateToken(token, {}, std::move(done)); }));
  ASSERT_OK(Await<v1::AccessEvent>([&](auto done) {
    store->RecordAccessEvent({Event("event-that-stays-here")}, std::move(done));
  }));
  const std::string copy = directory_.path() + "/published.db";
  ASSERT_OK(store->PublishCopy(copy));
  EXPECT_EQ(*Look(copy)->QueryInt("SELECT COUNT(*) FROM tokens"), 0);
  EXPECT_EQ(*Look(copy)->QueryInt("SELECT COUNT(*) FROM access_events"), 0);
  // Nor in pages that were freed.
  ASSERT_OK_AND_ASSIGN(const std::string bytes, ReadFile(copy, 64 << 20));
  for (const char* text : {"ci-of-the-secret-team", "digest-that-stays", "event-that-stays"}) {
    EXPECT_EQ(bytes.find(text), std::string::npos) << text;
  }
  ASSERT_OK_AND_ASSIGN(const auto kept, store->ListTokens());
  EXPECT_EQ(kept.size(), 1u);
}

TEST_F(SqliteStoreTest, TheNewestAccessEventsOfEachKindAreKept) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> store,
                       OpenSqliteStore({.directory = data(), .access_events_max = 3}));
  const auto record = [&](const std::string& method, bool refused) {
    ASSERT_OK(Await<v1::AccessEvent>([&](auto done) {
      store->RecordAccessEvent({Event(method), refused}, std::move(done));
    }));
  };
  record("act1", false);
  for (int i = 2; i <= 6; ++i) record(absl::StrCat("refusal", i), true);
  record("act7", false);
  ASSERT_OK_AND_ASSIGN(const auto listed, store->ListAccessEvents({}));
  std::vector<std::string> methods;
  for (const v1::AccessEvent& event : listed.items) {
    methods.push_back(absl::StrCat(event.number(), " ", event.method()));
  }
  EXPECT_THAT(methods,
              ::testing::ElementsAre("7 act7", "6 refusal6", "5 refusal5", "4 refusal4", "1 act1"));
}

TEST_F(SqliteStoreTest, ARecordThatDoesNotParseIsReported) {
  std::unique_ptr<Store> store = Open();
  ASSERT_OK(CreateProblem(*store, MakeProblem("gelu")));
  ASSERT_OK(CreateOne(*store, MakeEvaluation("e1")));
  store.reset();
  {
    auto db = Connection::Open(DatabasePath(data()), Connection::Role::kWriter);
    ASSERT_OK(db);
    ASSERT_OK((*db)->Execute("UPDATE evaluations SET proto = x'ff'"));
  }
  store = Open();
  EXPECT_THAT(
      store->GetEvaluation("evaluations/e1", false),
      ::testing::AllOf(StatusIs(absl::StatusCode::kDataLoss), HasReason("STORAGE_CORRUPT")));
}

TEST_F(SqliteStoreTest, ListsUseIndexes) {
  Open().reset();
  auto db = Look(DatabasePath(data()));
  const struct {
    const char* sql;
    const char* index;
  } cases[] = {
      {"SELECT id FROM evaluations WHERE problem_id = 1 AND id < 9 ORDER BY id DESC LIMIT 5",
       "evaluations_by_problem"},
      {"SELECT id FROM evaluations WHERE candidate_id = 1 AND id < 9 ORDER BY id DESC LIMIT 5",
       "evaluations_by_candidate"},
      {"SELECT id FROM evaluations WHERE state = 1 AND id < 9 ORDER BY id DESC LIMIT 5",
       "evaluations_by_state"},
      {"SELECT id, request_digest FROM evaluations WHERE request_id = 'x'",
       "evaluations_by_request"},
      {"SELECT id FROM evaluations WHERE identity = 'x'", "evaluations_by_identity"},
  };
  for (const auto& one : cases) {
    ASSERT_OK_AND_ASSIGN(Statement plan, db->Prepare(absl::StrCat("EXPLAIN QUERY PLAN ", one.sql)));
    ASSERT_TRUE(*plan.Step());
    EXPECT_THAT(std::string(plan.Text(3)), ::testing::HasSubstr(one.index)) << one.sql;
    EXPECT_FALSE(*plan.Step()) << one.sql << " sorts: " << plan.Text(3);
  }
}

TEST(WalResetBugTest, VersionsAreKnown) {
  const struct {
    int version;
    bool has;
  } cases[] = {{3'006'023, false}, {3'007'000, true},  {3'040'001, true}, {3'044'005, true},
               {3'044'006, false}, {3'045'000, true},  {3'050'006, true}, {3'050'007, false},
               {3'051'002, true},  {3'051'003, false}, {3'052'000, false}};
  for (const auto& one : cases) EXPECT_EQ(HasWalResetBug(one.version), one.has) << one.version;
}

}  // namespace
}  // namespace assay
