// Second runs, boards by contract, clones, replays.
#include "absl/strings/str_cat.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "store/confirmation.h"
#include "store/testing/builders.h"
#include "store/testing/conformance.h"

namespace assay {
namespace {

using ::assay::testing::Await;
using ::assay::testing::Complete;
using ::assay::testing::CreateAdmittedProblem;
using ::assay::testing::CreateCandidate;
using ::assay::testing::CreateOne;
using ::assay::testing::CreateProblem;
using ::assay::testing::Lease;
using ::assay::testing::MakeCandidate;
using ::assay::testing::MakeCompletion;
using ::assay::testing::MakeEvaluation;
using ::assay::testing::MakeGrant;
using ::assay::testing::MakeOutcome;
using ::assay::testing::MakeProblem;
using ::assay::testing::RecordAudit;
using ::assay::testing::RunConfirmed;
using ::assay::testing::RunEvaluation;
using ::assay::testing::TestTime;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// "rank label median confirmation"
std::vector<std::string> Board(Store& store, LeaderboardQuery query = {}) {
  std::vector<std::string> rows;
  auto entries = store.Leaderboard(query);
  EXPECT_OK(entries);
  for (const v1::LeaderboardEntry& entry : *entries) {
    rows.push_back(absl::StrCat(entry.rank(), " ", entry.candidate_label(), " ", entry.median_ns(),
                                " ",
                                v1::LeaderboardEntry::Confirmation_Name(entry.confirmation())));
  }
  return rows;
}

Completion MayConfirm(std::string_view id, v1::Outcome outcome) {
  Completion completion = MakeCompletion(id, 1, std::move(outcome));
  completion.may_confirm = true;
  return completion;
}

v1::Outcome With(v1::Outcome outcome, v1::Verdict verdict) {
  outcome.set_verdict(verdict);
  return outcome;
}

}  // namespace

// An audit that comes later finds its places settled.
TEST_P(StoreConformanceTest, SecondRunsDoNotWaitForAnAudit) {
  const v1::Problem scan = MakeProblem("scan");
  ASSERT_OK(CreateProblem(store(), scan));
  ASSERT_OK_AND_ASSIGN(const CompletionRecord first,
                       RunEvaluation(store(), MakeEvaluation("e1", "a", "scan"),
                                     MayConfirm("e1", MakeOutcome("small", 100))));
  ASSERT_TRUE(first.confirmation.has_value());
  EXPECT_THAT(Board(store()), ElementsAre());
  ASSERT_OK(RecordAudit(store(), scan, true));
  EXPECT_THAT(Board(store()), ElementsAre("0 a 100 PENDING"));
}

TEST_P(StoreConformanceTest, WhatWouldRankFirstIsRunAgain) {
  ASSERT_OK_AND_ASSIGN(const CompletionRecord first,
                       RunEvaluation(store(), MakeEvaluation("e1", "a"),
                                     MayConfirm("e1", MakeOutcome("small", 100))));
  ASSERT_TRUE(first.confirmation.has_value());
  const std::string name = first.confirmation->name();
  EXPECT_EQ(first.confirmation->confirms(), "evaluations/e1");
  EXPECT_EQ(first.confirmation->device_class(), "cpu-test-avx2");
  EXPECT_THAT(Board(store()), ElementsAre("0 a 100 PENDING"));
  // It is an evaluation like others, stored once, however often its first is completed.
  EXPECT_EQ(store().GetEvaluation(name, false)->state(), v1::QUEUED);
  ASSERT_OK_AND_ASSIGN(const CompletionRecord again,
                       Complete(store(), MayConfirm("e1", MakeOutcome("small", 100))));
  EXPECT_TRUE(again.already_recorded);
  ASSERT_TRUE(again.confirmation.has_value());
  EXPECT_EQ(again.confirmation->name(), name);
  EXPECT_EQ(store().ListUnfinished()->size(), 1u);

  LeaseGrant grant = MakeGrant("e1-confirmation", 1);
  ASSERT_OK(Lease(store(), grant));
  ASSERT_OK_AND_ASSIGN(const CompletionRecord second,
                       Complete(store(), MayConfirm("e1-confirmation", MakeOutcome("small", 90))));
  EXPECT_FALSE(second.confirmation.has_value()) << "a second run has no second run";
  EXPECT_THAT(Board(store()), ElementsAre("1 a 100 CONFIRMED"));
  EXPECT_EQ(store().Leaderboard({})->at(0).confirmed_by(), name);
  EXPECT_EQ(store().Leaderboard({})->at(0).evaluation(), "evaluations/e1");
}

TEST_P(StoreConformanceTest, APendingResultStandsAfterTheFirst) {
  ASSERT_OK(RunConfirmed(store(), MakeEvaluation("e1", "a"),
                         MakeCompletion("e1", 1, MakeOutcome("small", 100))));
  // Slower: nothing to confirm.
  ASSERT_OK_AND_ASSIGN(const CompletionRecord slower,
                       RunEvaluation(store(), MakeEvaluation("e2", "b"),
                                     MayConfirm("e2", MakeOutcome("small", 200))));
  EXPECT_FALSE(slower.confirmation.has_value());
  // As fast, and faster: they wait, after the first.
  for (const auto& [id, median_ns] : {std::pair("e3", 100), {"e4", 50}}) {
    ASSERT_OK_AND_ASSIGN(const CompletionRecord record,
                         RunEvaluation(store(), MakeEvaluation(id, id),
                                       MayConfirm(id, MakeOutcome("small", median_ns))));
    EXPECT_TRUE(record.confirmation.has_value()) << id;
  }
  EXPECT_THAT(Board(store()), ElementsAre("1 a 100 CONFIRMED", "0 e4 50 PENDING",
                                          "0 e3 100 PENDING", "2 b 200 NOT_NEEDED"));
  EXPECT_THAT(Board(store(), {.entries_max = 2}),
              ElementsAre("1 a 100 CONFIRMED", "0 e4 50 PENDING"));
  // Whoever ranks goes on ranking while a faster result of the same code waits; the first one
  // does not even show it.
  ASSERT_OK(RunEvaluation(store(), MakeEvaluation("e5", "b"),
                          MayConfirm("e5", MakeOutcome("small", 40))));
  ASSERT_OK(RunEvaluation(store(), MakeEvaluation("e6", "a"),
                          MayConfirm("e6", MakeOutcome("small", 30))));
  EXPECT_THAT(Board(store()), ElementsAre("1 a 100 CONFIRMED", "0 b 40 PENDING", "0 e4 50 PENDING",
                                          "0 e3 100 PENDING", "2 b 200 NOT_NEEDED"));
  // Once it is confirmed, those it overtakes have nothing to wait for.
  ASSERT_OK(Lease(store(), MakeGrant("e4-confirmation", 1)));
  ASSERT_OK(Complete(store(), MayConfirm("e4-confirmation", MakeOutcome("small", 51))));
  EXPECT_THAT(Board(store()),
              ElementsAre("1 e4 50 CONFIRMED", "0 a 30 PENDING", "0 b 40 PENDING",
                          "2 a 100 CONFIRMED", "3 e3 100 NOT_NEEDED", "4 b 200 NOT_NEEDED"));
}

TEST_P(StoreConformanceTest, AContradictedResultDoesNotRankAndIsNotAccused) {
  const struct {
    const char* id;
    v1::Outcome second;
    bool stays;
  } cases[] = {
      {"slower", MakeOutcome("small", 300), false},
      {"wrong", With(MakeOutcome("small", 0), v1::INCORRECT), false},
      {"fault of the problem", With(MakeOutcome("small", 0), v1::INVALID_PROBLEM), true},
  };
  double median_ns = 100;
  for (const auto& one : cases) {
    const std::string id = one.id[0] == 'f' ? "fault" : one.id;
    ASSERT_OK(RunConfirmed(store(), MakeEvaluation(id, id),
                           MakeCompletion(id, 1, MakeOutcome("small", median_ns)), one.second));
    const auto board = Board(store());
    EXPECT_EQ(!board.empty() && board.back() == absl::StrCat("0 ", id, " ", median_ns, " PENDING"),
              one.stays)
        << one.id;
    ASSERT_OK_AND_ASSIGN(const v1::Evaluation first,
                         store().GetEvaluation("evaluations/" + id, true));
    EXPECT_EQ(first.outcome().verdict(), v1::PASSED);
    EXPECT_EQ(first.outcome().findings_size(), 0);
    EXPECT_EQ(first.outcome().build().log(), "build log");
    EXPECT_EQ(first.outcome().workload_results(0).measurement().runners_size(), 2);
    EXPECT_THAT(first.outcome().message(), HasSubstr("every output was right"));
    if (one.stays) continue;
    EXPECT_THAT(first.outcome().message(),
                HasSubstr("Not ranked: the second run, evaluations/" + id + "-confirmation"));
    EXPECT_EQ(first.revision(), 4);
    EXPECT_EQ(first.state(), v1::SUCCEEDED);
    median_ns -= 10;
  }
  // Another try of the same candidate may rank.
  ASSERT_OK(RunConfirmed(store(), MakeEvaluation("again", "slower"),
                         MakeCompletion("again", 1, MakeOutcome("small", 90))));
  EXPECT_EQ(Board(store()).front(), "1 slower 90 CONFIRMED");
}

TEST_P(StoreConformanceTest, AFirstRunSaysWhyItsSecondSaysNothing) {
  const auto start = [&](const std::string& id, double median_ns) {
    ASSERT_OK(RunEvaluation(store(), MakeEvaluation(id, id),
                            MayConfirm(id, MakeOutcome("small", median_ns))));
    ASSERT_OK(Lease(store(), MakeGrant(id + "-confirmation", 1)));
  };
  const auto end = [&](const std::string& id, int64_t fence, bool final) {
    AttemptEnd attempt;
    attempt.evaluation = "evaluations/" + id + "-confirmation";
    attempt.fence = fence;
    attempt.error.set_code("UNAVAILABLE");
    attempt.error.set_reason("RUNNER_STARVED");
    attempt.final = final;
    attempt.time = TestTime(60);
    return Await<v1::Evaluation>([&](auto done) { store().RecordAttemptEnd(attempt, done); });
  };
  const auto message = [&](const std::string& id) {
    return store().GetEvaluation("evaluations/" + id, false)->outcome().message();
  };
  start("failed", 100);
  ASSERT_OK(end("failed", 1, /*final=*/false));
  EXPECT_EQ(message("failed"), "every output was right") << "it is asked again";
  LeaseGrant again = MakeGrant("failed-confirmation", 2);
  again.attempt = 2;
  ASSERT_OK(Lease(store(), again));
  ASSERT_OK(end("failed", 2, /*final=*/true));
  EXPECT_EQ(message("failed"),
            "every output was right\nNot confirmed: the second run, "
            "evaluations/failed-confirmation, failed 2 times, last with RUNNER_STARVED. Submit "
            "again for another try.");
  EXPECT_EQ(store().GetEvaluation("evaluations/failed", false)->revision(), 4);
  ASSERT_OK_AND_ASSIGN(const v1::Evaluation first,
                       store().GetEvaluation("evaluations/failed", true));
  EXPECT_EQ(first.outcome().verdict(), v1::PASSED);
  EXPECT_EQ(first.outcome().workload_results(0).measurement().runners_size(), 2);

  start("cancelled", 90);
  ASSERT_OK(Await<v1::Evaluation>([&](auto done) {
    store().RecordCancel("evaluations/cancelled-confirmation", TestTime(60), done);
  }));
  EXPECT_THAT(message("cancelled"),
              HasSubstr("evaluations/cancelled-confirmation, was cancelled."));

  start("unsupported", 80);
  v1::Outcome outcome = With(MakeOutcome("small", 0), v1::UNSUPPORTED);
  outcome.set_reason("ISA_MISSING");
  ASSERT_OK(Complete(store(), MayConfirm("unsupported-confirmation", outcome)));
  EXPECT_THAT(message("unsupported"), HasSubstr("was judged UNSUPPORTED ISA_MISSING, which says"));
  EXPECT_THAT(Board(store()), ElementsAre("0 unsupported 80 PENDING", "0 cancelled 90 PENDING",
                                          "0 failed 100 PENDING"));
  // What ends without a second run in it says nothing of others.
  ASSERT_OK(RunEvaluation(store(), MakeEvaluation("plain", "plain"),
                          MayConfirm("plain", MakeOutcome("small", 500))));
  EXPECT_EQ(message("plain"), "every output was right");
}

TEST_P(StoreConformanceTest, EachWorkloadIsConfirmedForItself) {
  v1::Outcome both = MakeOutcome("small", 100);
  *both.add_workload_results() = MakeOutcome("large", 1000).workload_results(0);
  v1::Outcome second = MakeOutcome("small", 100);
  *second.add_workload_results() = MakeOutcome("large", 5000).workload_results(0);
  ASSERT_OK(
      RunConfirmed(store(), MakeEvaluation("e1", "a"), MakeCompletion("e1", 1, both), second));
  EXPECT_THAT(Board(store()), ElementsAre("1 a 100 CONFIRMED"));
  EXPECT_THAT(store().GetEvaluation("evaluations/e1", false)->outcome().message(),
              HasSubstr("large took 1000 ns here and 5000 ns there"));
}

TEST_P(StoreConformanceTest, OnlyWhatMayRankIsRunAgain) {
  const struct {
    const char* id;
    std::function<void(NewEvaluation&, Completion&)> change;
  } cases[] = {
      {"quick", [](NewEvaluation& e, auto&) { e.evaluation.set_level(v1::QUICK); }},
      {"paired", [](NewEvaluation& e, auto&) { e.evaluation.set_level(v1::PAIRED); }},
      {"replay", [](NewEvaluation& e, auto&) { e.evaluation.set_replay_of("evaluations/x"); }},
      {"wrong", [](auto&, Completion& c) { c.outcome.set_verdict(v1::INCORRECT); }},
      {"suspect",
       [](auto&, Completion& c) { c.outcome.add_findings()->set_severity(v1::Finding::SUSPECT); }},
      {"untimed", [](auto&, Completion& c) { c.outcome = MakeOutcome("small", 0); }},
      {"nowhere", [](auto&, Completion& c) { c.device_class.clear(); }},
      {"full", [](auto&, Completion& c) { c.may_confirm = false; }},
  };
  for (const auto& one : cases) {
    NewEvaluation evaluation = MakeEvaluation(one.id, one.id);
    Completion completion = MayConfirm(one.id, MakeOutcome("small", 100));
    one.change(evaluation, completion);
    ASSERT_OK_AND_ASSIGN(const CompletionRecord record,
                         RunEvaluation(store(), evaluation, completion));
    EXPECT_FALSE(record.confirmation.has_value()) << one.id;
  }
  EXPECT_THAT(Board(store()), ElementsAre("0 full 100 PENDING"));
  EXPECT_THAT(*store().ListUnfinished(), IsEmpty());
}

TEST_P(StoreConformanceTest, ASecondRunOfAnotherVersionSaysNothing) {
  ASSERT_OK(RunEvaluation(store(), MakeEvaluation("e1", "a"),
                          MayConfirm("e1", MakeOutcome("small", 100))));
  ASSERT_OK(CreateAdmittedProblem(store(), MakeProblem("gelu", 2, "changed")));
  ASSERT_OK(Lease(store(), MakeGrant("e1-confirmation", 1)));
  v1::Outcome wrong = MakeOutcome("small", 0);
  wrong.set_verdict(v1::INCORRECT);
  ASSERT_OK(Complete(store(), MayConfirm("e1-confirmation", wrong)));
  EXPECT_EQ(store().GetEvaluation("evaluations/e1", false)->outcome().message(),
            "every output was right");
}

TEST_P(StoreConformanceTest, BoardsAreKeptApartByContract) {
  int number = 0;
  const auto run = [&](const char* candidate, const char* contract, double median_ns) {
    const std::string id = absl::StrCat("e", number++);
    Completion completion = MakeCompletion(id, 1, MakeOutcome("small", median_ns));
    completion.outcome.set_contract(contract);
    ASSERT_OK(RunConfirmed(store(), MakeEvaluation(id, candidate), completion));
  };
  run("a", "tf32", 50);
  run("b", "fp32", 100);
  run("a", "fp32", 200);
  run("c", "", 300);
  EXPECT_THAT(Board(store()), ElementsAre("1 c 300 CONFIRMED", "1 b 100 CONFIRMED",
                                          "2 a 200 NOT_NEEDED", "1 a 50 CONFIRMED"));
  EXPECT_THAT(Board(store(), {.contract = "fp32"}),
              ElementsAre("1 b 100 CONFIRMED", "2 a 200 NOT_NEEDED"));
  EXPECT_THAT(Board(store(), {.problem = "gelu",
                              .workload = "small",
                              .device_class = "cpu-test-avx2",
                              .contract = "tf32"}),
              ElementsAre("1 a 50 CONFIRMED"));
  EXPECT_THAT(Board(store(), {.contract = "none"}), IsEmpty());
  EXPECT_EQ(store().Leaderboard({})->at(1).contract(), "fp32");
}

TEST_P(StoreConformanceTest, TwoHundredClonesAreOneEntry) {
  constexpr int kClones = 200;
  ASSERT_OK(RunConfirmed(store(), MakeEvaluation("other", "other"),
                         MakeCompletion("other", 1, MakeOutcome("small", 500))));
  for (int i = 0; i < kClones; ++i) {
    const std::string id = absl::StrCat("e", i);
    NewEvaluation evaluation = MakeEvaluation(id, id);
    evaluation.candidate_fingerprint = "one";
    // Faster and slower ones in turn; the fastest is the clone number 100.
    const double median_ns = 1000 + (i * 37 + 100) % kClones - (i == 100 ? 900 : 0);
    ASSERT_OK(
        RunConfirmed(store(), evaluation, MakeCompletion(id, 1, MakeOutcome("small", median_ns))));
  }
  EXPECT_THAT(Board(store()), ElementsAre("1 e100 100 CONFIRMED", "2 other 500 CONFIRMED"));
  EXPECT_THAT(Board(store(), {.entries_max = 1}), ElementsAre("1 e100 100 CONFIRMED"));
  EXPECT_EQ(store().GetCandidate(MakeCandidate("e0").name())->clone_of(), "");
  EXPECT_EQ(store().GetCandidate(MakeCandidate("e7").name())->clone_of(),
            MakeCandidate("e0").name());
  Page all;
  all.size = 1000;
  int clones = 0;
  ASSERT_OK_AND_ASSIGN(const Listed<v1::Candidate> listed, store().ListCandidates("gelu", all));
  for (const v1::Candidate& candidate : listed.items) {
    clones += candidate.clone_of() == MakeCandidate("e0").name() ? 1 : 0;
  }
  EXPECT_EQ(clones, kClones - 1);
}

TEST_P(StoreConformanceTest, ClonesAreOfOneProblemAndOfTheirFirst) {
  ASSERT_OK(CreateAdmittedProblem(store(), MakeProblem("scan")));
  EXPECT_EQ(CreateCandidate(store(), MakeCandidate("a"), "one")->clone_of(), "");
  EXPECT_EQ(CreateCandidate(store(), MakeCandidate("b"), "one")->clone_of(),
            MakeCandidate("a").name());
  EXPECT_EQ(CreateCandidate(store(), MakeCandidate("c"), "one")->clone_of(),
            MakeCandidate("a").name());
  EXPECT_EQ(CreateCandidate(store(), MakeCandidate("d"), "two")->clone_of(), "");
  EXPECT_EQ(CreateCandidate(store(), MakeCandidate("e", "scan"), "one")->clone_of(), "");
  // What is not known is nobody's clone.
  EXPECT_EQ(CreateCandidate(store(), MakeCandidate("f"), "")->clone_of(), "");
  EXPECT_EQ(CreateCandidate(store(), MakeCandidate("g"), "")->clone_of(), "");
  // The stored one, whatever comes along.
  v1::Candidate claimed = MakeCandidate("h");
  claimed.set_clone_of("candidates/none");
  EXPECT_EQ(CreateCandidate(store(), claimed, "three")->clone_of(), "");
  EXPECT_EQ(CreateCandidate(store(), MakeCandidate("a"), "two")->clone_of(), "");
}

TEST_P(StoreConformanceTest, WhatAnEvaluationRanOnIsKept) {
  EXPECT_THAT(store().GetRanOn("evaluations/none"), HasReason("EVALUATION_NOT_FOUND"));
  ASSERT_OK(CreateOne(store(), MakeEvaluation("e1")));
  EXPECT_EQ(store().GetRanOn("evaluations/e1")->device_class, "");
  ASSERT_OK(Lease(store(), MakeGrant("e1", 1)));
  ASSERT_OK(CreateAdmittedProblem(store(), MakeProblem("gelu", 2, "changed")));
  ASSERT_OK(Complete(store(), MakeCompletion("e1", 1, MakeOutcome("small", 1))));
  ASSERT_OK_AND_ASSIGN(const RanOn ran_on, store().GetRanOn("evaluations/e1"));
  EXPECT_EQ(ran_on.device_class, "cpu-test-avx2");
  EXPECT_EQ(ran_on.problem_version, 1);
}

TEST_P(StoreConformanceTest, ReplaysAndSecondRunsNeverRank) {
  NewEvaluation replay = MakeEvaluation("e1", "a");
  replay.evaluation.set_replay_of("evaluations/e0");
  ASSERT_OK(RunEvaluation(store(), replay, MayConfirm("e1", MakeOutcome("small", 1))));
  ASSERT_OK(RunConfirmed(store(), MakeEvaluation("e2", "b"),
                         MakeCompletion("e2", 1, MakeOutcome("small", 100)),
                         MakeOutcome("small", 50)));
  EXPECT_THAT(Board(store()), ElementsAre("1 b 100 CONFIRMED"));
}

}  // namespace assay
