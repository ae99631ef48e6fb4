// The views that dashboards read: documented columns, agreement with the API.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "store/sqlite/connection.h"
#include "store/sqlite/sqlite_store.h"
#include "store/testing/builders.h"

namespace assay {
namespace {

using ::assay::testing::Await;
using ::assay::testing::Cancel;
using ::assay::testing::CreateAdmittedProblem;
using ::assay::testing::CreateCandidate;
using ::assay::testing::CreateOne;
using ::assay::testing::CreateProblem;
using ::assay::testing::MakeCandidate;
using ::assay::testing::MakeCompletion;
using ::assay::testing::MakeEvaluation;
using ::assay::testing::MakeOutcome;
using ::assay::testing::MakeProblem;
using ::assay::testing::RecordAudit;
using ::assay::testing::RunConfirmed;
using ::assay::testing::RunEvaluation;
using ::assay::testing::TestTime;
using ::testing::ElementsAre;

class ViewsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto store = OpenSqliteStore({.directory = directory_.path()});
    ASSERT_OK(store);
    store_ = *std::move(store);
    ASSERT_OK(CreateAdmittedProblem(*store_, MakeProblem("gelu")));
  }
  // Rows with columns joined by '|', from a published copy as dashboards see it.
  std::vector<std::string> Query(const std::string& sql) {
    const std::string copy = directory_.path() + "/copy.db";
    EXPECT_OK(store_->PublishCopy(copy));
    auto db = Connection::Open(copy, Connection::Role::kReader);
    EXPECT_OK(db);
    auto select = (*db)->Prepare(sql);
    EXPECT_OK(select);
    std::vector<std::string> rows;
    for (;;) {
      auto row = select->Step();
      EXPECT_OK(row);
      if (!row.ok() || !*row) return rows;
      std::vector<std::string> columns;
      const int count = sqlite3_column_count(sqlite3_next_stmt((*db)->handle(), nullptr));
      for (int i = 0; i < count; ++i) {
        columns.push_back(select->IsNull(i) ? "NULL" : std::string(select->Text(i)));
      }
      rows.push_back(absl::StrJoin(columns, "|"));
    }
  }
  void Run(std::string_view id, std::string_view candidate, v1::Outcome outcome, double seconds) {
    ASSERT_OK(RunConfirmed(*store_, MakeEvaluation(id, candidate),
                           MakeCompletion(id, 1, std::move(outcome), seconds)));
  }

  TemporaryDirectory directory_ = *TemporaryDirectory::Create("assay-views");
  std::unique_ptr<Store> store_;
};

TEST_F(ViewsTest, ColumnsAreTheDocumentedOnes) {
  EXPECT_THAT(
      Query("SELECT m.name, (SELECT GROUP_CONCAT(name, ' ') FROM pragma_table_info(m.name))"
            " FROM sqlite_schema AS m WHERE m.type = 'view' ORDER BY m.name"),
      ElementsAre(
          "v_evaluation_history|complete_time evaluation problem problem_version workload"
          " device_class candidate label author model level state verdict reason suspect median_ns"
          " q1_ns q3_ns efficiency_ratio bound runner_spread_ratio baseline speedup_ratio worker"
          " create_time",
          "v_leaderboard|rank problem workload device_class candidate label author model median_ns"
          " q1_ns q3_ns efficiency_ratio bound runner_spread_ratio baseline speedup_ratio"
          " evaluation complete_time problem_version contract confirmation confirmed_by",
          "v_queue|state evaluations", "v_verdicts|day problem verdict reason evaluations answered",
          "v_workers|name state device_class model last_seen completed infrastructure_failures"
          " version"));
}

TEST_F(ViewsTest, TheLeaderboardAgreesWithTheApi) {
  Run("e1", "slow", MakeOutcome("small", 300), 100);
  Run("e2", "fast", MakeOutcome("small", 200), 101);
  Run("e3", "fast", MakeOutcome("small", 100), 102);
  Run("e4", "tied", MakeOutcome("small", 100), 103);
  Run("e5", "slow", MakeOutcome("large", 400), 104);
  v1::Outcome suspect = MakeOutcome("small", 1);
  suspect.add_findings()->set_severity(v1::Finding::SUSPECT);
  Run("e6", "suspect", suspect, 105);
  // Waits for its second run; its own slower result goes on ranking.
  v1::Outcome waiting = MakeOutcome("small", 50);
  ASSERT_OK(
      RunEvaluation(*store_, MakeEvaluation("e9", "slow"), MakeCompletion("e9", 1, waiting, 105)));
  ASSERT_OK(RunEvaluation(*store_, MakeEvaluation("e10", "fast"),
                          MakeCompletion("e10", 1, waiting, 105)));
  v1::Outcome exact = MakeOutcome("small", 700);
  exact.set_contract("exact");
  ASSERT_OK(
      RunEvaluation(*store_, MakeEvaluation("e11", "fast"), MakeCompletion("e11", 1, exact, 105)));
  // A clone of another shows once.
  for (const char* id : {"clone", "copy"}) {
    ASSERT_OK(CreateCandidate(*store_, MakeCandidate(id), "one"));
    Run(absl::StrCat("of ", id), id, MakeOutcome("small", id[1] == 'l' ? 650 : 600), 105);
  }
  // An earlier version of another problem does not show.
  ASSERT_OK(CreateAdmittedProblem(*store_, MakeProblem("scan", 1)));
  ASSERT_OK(RunEvaluation(*store_, MakeEvaluation("e7", "s1", "scan"),
                          MakeCompletion("e7", 1, MakeOutcome("small", 5), 106)));
  ASSERT_OK(CreateAdmittedProblem(*store_, MakeProblem("scan", 2)));
  ASSERT_OK(RunEvaluation(*store_, MakeEvaluation("e8", "s1", "scan"),
                          MakeCompletion("e8", 1, MakeOutcome("small", 9), 107)));

  std::vector<std::string> want;
  ASSERT_OK_AND_ASSIGN(const std::vector<v1::LeaderboardEntry> entries,
                       store_->Leaderboard({.entries_max = 100}));
  for (const v1::LeaderboardEntry& entry : entries) {
    want.push_back(absl::StrJoin(
        std::vector<std::string>{
            absl::StrCat(entry.rank()), entry.workload(), entry.device_class(), entry.candidate(),
            entry.candidate_label(), entry.author(), entry.model(),
            absl::StrCat(entry.median_ns(), ".0"), absl::StrCat(entry.efficiency_ratio()),
            entry.bound(), absl::StrCat(entry.runner_spread_ratio()), entry.baseline(),
            absl::StrCat(entry.speedup_ratio(), ".0"), entry.evaluation(),
            absl::StrCat(entry.complete_time().seconds()), absl::StrCat(entry.problem_version()),
            entry.contract(), v1::LeaderboardEntry::Confirmation_Name(entry.confirmation()),
            entry.confirmed_by()},
        "|"));
  }
  EXPECT_EQ(want.size(), 8u);
  EXPECT_EQ(Query("SELECT rank, workload, device_class, candidate, label, author, model, median_ns,"
                  " efficiency_ratio, bound, runner_spread_ratio, baseline, speedup_ratio,"
                  " evaluation, complete_time, problem_version, contract, confirmation,"
                  " confirmed_by FROM v_leaderboard ORDER BY problem, workload, device_class,"
                  " contract, rank <> 1, rank, median_ns"),
            want);
  EXPECT_THAT(Query("SELECT q1_ns, q3_ns FROM v_leaderboard WHERE evaluation = 'evaluations/e3'"),
              ElementsAre("90.0|110.0"));
}

TEST_F(ViewsTest, HistoryVerdictsAndQueueCountEverything) {
  ASSERT_OK(RunEvaluation(*store_, MakeEvaluation("e1", "c1"),
                          MakeCompletion("e1", 1, MakeOutcome("small", 100), 100)));
  v1::Outcome failed;
  failed.set_verdict(v1::COMPILE_ERROR);
  failed.set_reason("COMPILE_FAILED");
  Run("e2", "c2", failed, 200);
  NewEvaluation answered = MakeEvaluation("e3", "c1", "gelu", 300);
  answered.evaluation.set_state(v1::SUCCEEDED);
  *answered.evaluation.mutable_outcome() = MakeOutcome("small", 100);
  ASSERT_OK(CreateOne(*store_, answered));
  ASSERT_OK(CreateOne(*store_, MakeEvaluation("e4")));
  ASSERT_OK(Cancel(*store_, "e4", 400));
  ASSERT_OK(CreateOne(*store_, MakeEvaluation("e5")));

  const int64_t base = absl::ToUnixSeconds(TestTime(0));
  EXPECT_THAT(
      Query("SELECT complete_time, evaluation, workload, device_class, state, verdict,"
            " reason, median_ns FROM v_evaluation_history ORDER BY complete_time"),
      ElementsAre(
          absl::StrCat(base + 100, "|evaluations/e1|small|cpu-test-avx2|SUCCEEDED|PASSED||100.0"),
          absl::StrCat(base + 200,
                       "|evaluations/e2|NULL|cpu-test-avx2|SUCCEEDED|COMPILE_ERROR"
                       "|COMPILE_FAILED|NULL"),
          absl::StrCat(base + 400, "|evaluations/e4|NULL|cpu|CANCELLED|NULL||NULL")));
  const int64_t day = base / 86400 * 86400;
  EXPECT_THAT(Query("SELECT * FROM v_verdicts ORDER BY verdict"),
              ElementsAre(absl::StrCat(day, "|problems/gelu|COMPILE_ERROR|COMPILE_FAILED|1|0"),
                          absl::StrCat(day, "|problems/gelu|PASSED||2|1")));
  EXPECT_THAT(Query("SELECT * FROM v_queue ORDER BY state"),
              ElementsAre("CANCELLED|1", "FAILED|0", "QUEUED|1", "RUNNING|0", "SUCCEEDED|3"));
}

TEST_F(ViewsTest, WorkersShowTheirDevices) {
  v1::Worker worker;
  worker.set_name("workers/w1");
  worker.set_state(v1::Worker::QUARANTINED);
  worker.set_version("1.2");
  worker.set_completed_count(7);
  worker.set_infrastructure_failure_count(5);
  worker.mutable_last_seen_time()->set_seconds(1234);
  for (const char* name : {"cpu-a", "cuda-b"}) {
    v1::Device* device = worker.add_devices();
    device->set_device_class(name);
    device->set_model(absl::StrCat("model ", name));
  }
  ASSERT_OK(Await<bool>([&](auto done) { store_->RecordWorker(worker, std::move(done)); }));
  EXPECT_THAT(Query("SELECT * FROM v_workers"),
              ElementsAre("workers/w1|QUARANTINED|cpu-a,cuda-b|model cpu-a,model cuda-b|1234|7|5"
                          "|1.2"));
}

TEST_F(ViewsTest, LeaderboardShowsAdmittedProblemsAlone) {
  ASSERT_OK(CreateProblem(*store_, MakeProblem("scan")));
  ASSERT_OK(RunEvaluation(*store_, MakeEvaluation("e1", "c1", "scan"),
                          MakeCompletion("e1", 1, MakeOutcome("small", 10), 20)));
  EXPECT_THAT(Query("SELECT problem FROM v_leaderboard"), ElementsAre()) << "never audited";
  ASSERT_OK(RecordAudit(*store_, MakeProblem("scan"), true));
  EXPECT_THAT(Query("SELECT problem FROM v_leaderboard"), ElementsAre("problems/scan"));
  ASSERT_OK(RecordAudit(*store_, MakeProblem("scan"), false));
  EXPECT_THAT(Query("SELECT problem FROM v_leaderboard"), ElementsAre());
}

}  // namespace
}  // namespace assay
