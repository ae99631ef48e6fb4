#include "store/sqlite/migrate.h"

#include <sqlite3.h>

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
using ::assay::testing::Lease;
using ::assay::testing::MakeCompletion;
using ::assay::testing::MakeEvaluation;
using ::assay::testing::MakeGrant;
using ::assay::testing::MakeOutcome;
using ::assay::testing::MakeProblem;
using ::assay::testing::RecordAudit;
using ::assay::testing::RunEvaluation;

// Rows as the release with schema version 1 wrote them; every later version must keep them.
// `proto` holds what that release would have: Evaluation {name, candidate, problem, state QUEUED,
// revision 1}.
std::string VersionOneRows() {
  v1::Evaluation evaluation = MakeEvaluation("old", "c1").evaluation;
  evaluation.set_revision(1);
  const NewEvaluation made = MakeEvaluation("old", "c1");
  v1::Problem problem = MakeProblem("gelu");
  const auto hex = [](const std::string& bytes) {
    std::string out = "x'";
    for (const unsigned char c : bytes) absl::StrAppend(&out, absl::Hex(c, absl::kZeroPad2));
    return out + "'";
  };
  return absl::StrCat(
      "INSERT INTO problems (id, name) VALUES (1, 'problems/gelu');"
      "INSERT INTO problem_versions VALUES (1, 1, '",
      problem.digest(), "', 5, ", hex(problem.SerializeAsString()),
      ", x'');"
      "INSERT INTO candidates (id, name, problem, label, author, model, create_time, proto, files)"
      " VALUES (1, '",
      made.candidate->name(), "', 'problems/gelu', 'c1', 'a', 'm', 5, ",
      hex(made.candidate->SerializeAsString()),
      ", x'');"
      "INSERT INTO evaluations (name, problem_id, problem_version, candidate_id, device_class,"
      " label, level, state, verdict, reason, revision, answered, create_time, update_time, proto)"
      " VALUES ('evaluations/old', 1, 1, 1, 'cpu', 'c1', 3, 1, 0, '', 1, 0, 5, 5, ",
      hex(evaluation.SerializeAsString()), ");");
}

class MigrateTest : public ::testing::Test {
 protected:
  std::string path() const { return DatabasePath(directory_.path()); }
  std::unique_ptr<Connection> Open() {
    auto connection = Connection::Open(path(), Connection::Role::kWriter);
    EXPECT_OK(connection);
    return *std::move(connection);
  }

  TemporaryDirectory directory_ = *TemporaryDirectory::Create("assay-migrate");
};

TEST_F(MigrateTest, NumbersFollowEachOther) {
  int expected = 1;
  for (const Migration& migration : Migrations()) EXPECT_EQ(migration.version, expected++);
  EXPECT_GE(expected, 3);
}

TEST_F(MigrateTest, EveryVersionComesToTheNewestWithItsData) {
  for (size_t version = 0; version <= Migrations().size(); ++version) {
    SCOPED_TRACE(absl::StrCat("from version ", version));
    const TemporaryDirectory directory = *TemporaryDirectory::Create("assay-migrate");
    {
      auto db = Connection::Open(DatabasePath(directory.path()), Connection::Role::kWriter);
      ASSERT_OK(db);
      ASSERT_OK(Migrate(**db, Migrations().subspan(0, version)));
      EXPECT_EQ(*(*db)->QueryInt("PRAGMA user_version"), static_cast<int64_t>(version));
      if (version > 0) {
        ASSERT_OK((*db)->Execute(VersionOneRows()));
      }
    }
    ASSERT_OK_AND_ASSIGN(std::unique_ptr<Store> store,
                         OpenSqliteStore({.directory = directory.path()}));
    if (version > 0) {
      ASSERT_OK_AND_ASSIGN(const v1::Evaluation old, store->GetEvaluation("evaluations/old", true));
      EXPECT_EQ(old.problem(), "problems/gelu");
      ASSERT_OK_AND_ASSIGN(const v1::Evaluation leased, Lease(*store, MakeGrant("old", 1)));
      EXPECT_EQ(leased.revision(), 2);
      EXPECT_OK(store->GetProblem("problems/gelu", 1));
      EXPECT_OK(store->GetCandidate(old.candidate()));
    } else {
      ASSERT_OK(CreateProblem(*store, MakeProblem("gelu")));
    }
    ASSERT_OK(CreateOne(*store, MakeEvaluation("new")));
    store.reset();
    ASSERT_OK_AND_ASSIGN(
        auto db, Connection::Open(DatabasePath(directory.path()), Connection::Role::kReader));
    EXPECT_EQ(*db->QueryInt("PRAGMA user_version"), static_cast<int64_t>(Migrations().size()));
    EXPECT_EQ(*db->QueryInt("SELECT COUNT(*) FROM pragma_foreign_key_check()"), 0);
    EXPECT_EQ(*db->QueryInt("SELECT COUNT(*) FROM v_leaderboard"), 0);
  }
}

TEST_F(MigrateTest, WhatRankedBeforeSecondRunsStaysFirst) {
  {
    auto db = Open();
    ASSERT_OK(Migrate(*db, Migrations().subspan(0, 2)));
    ASSERT_OK(db->Execute(VersionOneRows()));
    ASSERT_OK(db->Execute(
        "INSERT INTO results (evaluation_id, workload_index, problem_id, problem_version,"
        " workload, device_class, candidate_id, level, verdict, suspect, median_ns, bound,"
        " baseline, complete_time)"
        " VALUES (1, 0, 1, 1, 'small', 'cpu-test-avx2', 1, 3, 1, 0, 50.0, '', '', 9)"));
  }
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Store> store,
                       OpenSqliteStore({.directory = directory_.path()}));
  ASSERT_OK(RecordAudit(*store, *store->GetProblem("problems/gelu", 1), true));
  ASSERT_OK_AND_ASSIGN(const std::vector<v1::LeaderboardEntry> entries, store->Leaderboard({}));
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].rank(), 1);
  EXPECT_EQ(entries[0].contract(), "");
  EXPECT_EQ(entries[0].confirmation(), v1::LeaderboardEntry::NOT_NEEDED);
  // What is faster is confirmed before it takes that place.
  Completion completion = MakeCompletion("new", 1, MakeOutcome("small", 40));
  completion.may_confirm = true;
  ASSERT_OK_AND_ASSIGN(const CompletionRecord record,
                       RunEvaluation(*store, MakeEvaluation("new", "c2"), completion));
  EXPECT_TRUE(record.confirmation.has_value());
  EXPECT_EQ(store->Leaderboard({})->at(0).median_ns(), 50);
}

TEST_F(MigrateTest, ANewerSchemaIsRefusedAndLeftAlone) {
  const int newest = Migrations().back().version;
  {
    auto db = Open();
    ASSERT_OK(Migrate(*db, Migrations()));
    ASSERT_OK(db->Execute(absl::StrCat("PRAGMA user_version = ", newest + 1)));
  }
  EXPECT_THAT(OpenSqliteStore({.directory = directory_.path()}),
              ::testing::AllOf(StatusIs(absl::StatusCode::kFailedPrecondition,
                                        ::testing::HasSubstr(absl::StrCat("version ", newest + 1))),
                               HasReason("SCHEMA_TOO_NEW")));
  EXPECT_EQ(*Open()->QueryInt("PRAGMA user_version"), newest + 1);
  // The refused attempt let go of the folder.
  ASSERT_OK(Open()->Execute(absl::StrCat("PRAGMA user_version = ", newest)));
  EXPECT_OK(OpenSqliteStore({.directory = directory_.path()}));
}

TEST_F(MigrateTest, AFailingMigrationChangesNothing) {
  const Migration migrations[] = {{1, "0001_a.sql", "CREATE TABLE a (x) "},
                                  {2, "0002_b.sql", "CREATE TABLE b (x); CREATE TABLE a (x);"}};
  auto db = Open();
  EXPECT_THAT(Migrate(*db, migrations),
              StatusIs(absl::StatusCode::kInternal, ::testing::HasSubstr("0002_b.sql")));
  EXPECT_EQ(*db->QueryInt("PRAGMA user_version"), 1);
  EXPECT_EQ(*db->QueryInt("SELECT COUNT(*) FROM sqlite_schema"), 1);
  EXPECT_FALSE(db->in_transaction());
}

TEST_F(MigrateTest, TablesAreStrictAndTheViewsKnowEveryEnumValue) {
  auto db = Open();
  ASSERT_OK(Migrate(*db, Migrations()));
  ASSERT_OK(WriteEnumNames(*db));
  EXPECT_EQ(*db->QueryInt("SELECT COUNT(*) FROM pragma_table_list WHERE schema = 'main' AND"
                          " type = 'table' AND name NOT LIKE 'sqlite_%' AND strict = 0"),
            0);
  EXPECT_EQ(*db->QueryInt("SELECT COUNT(*) FROM enum_names WHERE kind = 'verdict'"),
            v1::Verdict_descriptor()->value_count());
  // The numbers that SQL and the views spell out.
  for (const auto& [kind, number, name] :
       {std::tuple("state", 1, "QUEUED"), std::tuple("state", 2, "RUNNING"),
        std::tuple("state", 3, "SUCCEEDED"), std::tuple("level", 3, "RANKED"),
        std::tuple("verdict", 1, "PASSED")}) {
    EXPECT_EQ(*db->QueryInt(absl::StrCat("SELECT COUNT(*) FROM enum_names WHERE kind = '", kind,
                                         "' AND number = ", number, " AND name = '", name, "'")),
              1)
        << name;
  }
  // Again, and after a name changed.
  ASSERT_OK(db->Execute("UPDATE enum_names SET name = 'x' WHERE kind = 'state' AND number = 1"));
  ASSERT_OK(WriteEnumNames(*db));
  EXPECT_EQ(*db->QueryInt("SELECT COUNT(*) FROM enum_names WHERE name = 'QUEUED'"), 1);
}

}  // namespace
}  // namespace assay
