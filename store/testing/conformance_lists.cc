#include "store/testing/conformance.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "store/records.h"
#include "store/testing/builders.h"
#include "store/testing/proto_matcher.h"

namespace assay {
namespace {

using ::assay::testing::Await;
using ::assay::testing::Cancel;
using ::assay::testing::Complete;
using ::assay::testing::CreateAdmittedProblem;
using ::assay::testing::CreateOne;
using ::assay::testing::CreateProblem;
using ::assay::testing::EqualsProto;
using ::assay::testing::Lease;
using ::assay::testing::MakeCandidate;
using ::assay::testing::MakeCompletion;
using ::assay::testing::MakeEvaluation;
using ::assay::testing::MakeGrant;
using ::assay::testing::MakeOutcome;
using ::assay::testing::MakeProblem;
using ::assay::testing::RunConfirmed;
using ::assay::testing::RunEvaluation;
using ::assay::testing::TestTime;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Field = EvaluationCondition::Field;
using Operator = EvaluationCondition::Operator;

std::vector<std::string> Names(const std::vector<v1::Evaluation>& evaluations) {
  std::vector<std::string> names;
  for (const v1::Evaluation& evaluation : evaluations) {
    names.push_back(evaluation.name().substr(std::string("evaluations/").size()));
  }
  return names;
}

}  // namespace

// --- Lists.

TEST_P(StoreConformanceTest, EvaluationsAreListedNewestFirstInPages) {
  constexpr int kCount = 7;
  for (int i = 0; i < kCount; ++i) {
    ASSERT_OK(RunEvaluation(store(), MakeEvaluation(absl::StrCat("e", i)),
                            MakeCompletion(absl::StrCat("e", i), 1, MakeOutcome("small", 100))));
  }
  Page page;
  page.size = 3;
  std::vector<std::string> seen;
  int inserted = 0;
  do {
    ASSERT_OK_AND_ASSIGN(Listed<v1::Evaluation> listed, store().ListEvaluations({}, page));
    EXPECT_LE(listed.items.size(), 3u);
    for (const v1::Evaluation& evaluation : listed.items) {
      EXPECT_EQ(evaluation.outcome().workload_results(0).measurement().runners_size(), 0);
      EXPECT_EQ(evaluation.outcome().build().log(), "");
      EXPECT_EQ(evaluation.outcome().output_log(), "");
      EXPECT_EQ(evaluation.outcome().build().compiler(), "g++ 12");
    }
    for (std::string& name : Names(listed.items)) seen.push_back(std::move(name));
    page.after = listed.next;
    // What arrives meanwhile neither shows up nor shifts anything.
    ASSERT_OK(CreateOne(store(), MakeEvaluation(absl::StrCat("late", inserted++))));
  } while (!page.after.empty());
  EXPECT_THAT(seen, ElementsAre("e6", "e5", "e4", "e3", "e2", "e1", "e0"));
}

TEST_P(StoreConformanceTest, PageTokensOfOthersAreRefused) {
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(CreateOne(store(), MakeEvaluation(absl::StrCat("e", i), absl::StrCat("c", i))));
  }
  Page one;
  one.size = 1;
  const std::string evaluations = store().ListEvaluations({}, one)->next;
  const std::string candidates = store().ListCandidates("", one)->next;
  ASSERT_FALSE(evaluations.empty());
  ASSERT_FALSE(candidates.empty());
  std::string edited = evaluations;
  edited[1] = edited[1] == '3' ? '4' : '3';
  const std::string nul("e\0\0\0", 4);
  for (const std::string& token :
       {std::string("x"), std::string("1"), std::string("e"), std::string("-1"), candidates, edited,
        evaluations + "0", evaluations.substr(1), nul, std::string(1000, 'e'),
        EncodePageToken(kEvaluationPages, "-5"), EncodePageToken(kEvaluationPages, "1 OR 1"),
        EncodePageToken(kEvaluationPages, "99999999999999999999")}) {
    Page page;
    page.after = token;
    EXPECT_THAT(store().ListEvaluations({}, page),
                ::testing::AllOf(StatusIs(absl::StatusCode::kInvalidArgument),
                                 HasReason("PAGE_TOKEN_INVALID")))
        << token;
  }
  Page page;
  page.after = evaluations;
  EXPECT_THAT(store().ListCandidates("", page), HasReason("PAGE_TOKEN_INVALID"));
  EXPECT_THAT(store().ListProblems(page), HasReason("PAGE_TOKEN_INVALID"));
}

TEST_P(StoreConformanceTest, ConditionsSelect) {
  ASSERT_OK(CreateAdmittedProblem(store(), MakeProblem("scan")));
  ASSERT_OK(CreateOne(store(), MakeEvaluation("e0", "c0", "gelu", 0)));
  NewEvaluation quick = MakeEvaluation("e1", "c1", "scan", 1);
  quick.evaluation.set_level(v1::QUICK);
  quick.evaluation.set_device_class("cuda");
  quick.evaluation.set_candidate_label("it's \"quoted\"; --");
  ASSERT_OK(CreateOne(store(), quick));
  ASSERT_OK(RunEvaluation(store(), MakeEvaluation("e2", "c0", "gelu", 2),
                          MakeCompletion("e2", 1, MakeOutcome("small", 100))));
  v1::Outcome wrong = MakeOutcome("small", 0);
  wrong.set_verdict(v1::INCORRECT);
  ASSERT_OK(RunEvaluation(store(), MakeEvaluation("e3", "c2", "scan", 3),
                          MakeCompletion("e3", 1, wrong)));

  const int64_t second = absl::ToUnixNanos(TestTime(2));
  const std::string c0 = MakeCandidate("c0").name();
  const struct {
    std::vector<EvaluationCondition> conditions;
    std::vector<std::string> want;
  } cases[] = {
      {{}, {"e3", "e2", "e1", "e0"}},
      {{{Field::kProblem, Operator::kEqual, "problems/gelu", 0}}, {"e2", "e0"}},
      {{{Field::kProblem, Operator::kNotEqual, "problems/gelu", 0}}, {"e3", "e1"}},
      {{{Field::kProblem, Operator::kEqual, "problems/none", 0}}, {}},
      {{{Field::kProblem, Operator::kNotEqual, "problems/none", 0}}, {"e3", "e2", "e1", "e0"}},
      {{{Field::kCandidate, Operator::kEqual, c0, 0}}, {"e2", "e0"}},
      {{{Field::kCandidate, Operator::kNotEqual, c0, 0}}, {"e3", "e1"}},
      {{{Field::kState, Operator::kEqual, "", v1::SUCCEEDED}}, {"e3", "e2"}},
      {{{Field::kState, Operator::kNotEqual, "", v1::SUCCEEDED}}, {"e1", "e0"}},
      {{{Field::kVerdict, Operator::kEqual, "", v1::PASSED}}, {"e2"}},
      {{{Field::kVerdict, Operator::kNotEqual, "", v1::PASSED}}, {"e3", "e1", "e0"}},
      {{{Field::kState, Operator::kEqual, "", v1::SUCCEEDED},
        {Field::kVerdict, Operator::kNotEqual, "", v1::PASSED}},
       {"e3"}},
      {{{Field::kLevel, Operator::kEqual, "", v1::QUICK}}, {"e1"}},
      {{{Field::kLevel, Operator::kNotEqual, "", v1::QUICK}}, {"e3", "e2", "e0"}},
      {{{Field::kDeviceClass, Operator::kEqual, "cuda", 0}}, {"e1"}},
      {{{Field::kDeviceClass, Operator::kNotEqual, "cuda", 0}}, {"e3", "e2", "e0"}},
      {{{Field::kLabel, Operator::kEqual, "it's \"quoted\"; --", 0}}, {"e1"}},
      {{{Field::kLabel, Operator::kNotEqual, "c0", 0}}, {"e3", "e1"}},
      {{{Field::kCreateTime, Operator::kLess, "", second}}, {"e1", "e0"}},
      {{{Field::kCreateTime, Operator::kGreater, "", second}}, {"e3"}},
      {{{Field::kCreateTime, Operator::kEqual, "", second}}, {"e2"}},
      {{{Field::kCreateTime, Operator::kNotEqual, "", second}}, {"e3", "e1", "e0"}},
  };
  int index = 0;
  for (const auto& one : cases) {
    // In one page and in pages of one.
    for (const int size : {50, 1}) {
      std::vector<std::string> seen;
      Page page;
      page.size = size;
      do {
        ASSERT_OK_AND_ASSIGN(Listed<v1::Evaluation> listed,
                             store().ListEvaluations(one.conditions, page));
        for (std::string& name : Names(listed.items)) seen.push_back(std::move(name));
        page.after = listed.next;
      } while (!page.after.empty());
      EXPECT_EQ(seen, one.want) << "case " << index << ", pages of " << size;
    }
    ++index;
  }
  EXPECT_THAT(store().ListEvaluations({{Field::kLabel, Operator::kLess, "x", 0}}, Page()),
              ::testing::AllOf(StatusIs(absl::StatusCode::kInvalidArgument),
                               HasReason("FILTER_UNSUPPORTED")));
}

TEST_P(StoreConformanceTest, AnIdentityFindsTheNewestCompletion) {
  EXPECT_THAT(store().FindByIdentity("id"), StatusIs(absl::StatusCode::kNotFound));
  const struct {
    const char* id;
    const char* identity;
    double seconds;
  } runs[] = {
      {"e0", "id", 50}, {"e1", "id", 90}, {"e2", "id", 70}, {"e3", "other", 99}, {"e4", "", 100}};
  for (const auto& run : runs) {
    Completion completion = MakeCompletion(run.id, 1, MakeOutcome("small", 100), run.seconds);
    completion.identity = run.identity;
    ASSERT_OK(RunEvaluation(store(), MakeEvaluation(run.id), completion));
  }
  ASSERT_OK_AND_ASSIGN(const v1::Evaluation found, store().FindByIdentity("id"));
  EXPECT_EQ(found.name(), "evaluations/e1");
  EXPECT_EQ(found.outcome().build().log(), "build log");
  EXPECT_EQ(found.outcome().workload_results(0).measurement().runners_size(), 0);
  EXPECT_THAT(store().FindByIdentity(""), StatusIs(absl::StatusCode::kNotFound));
}

TEST_P(StoreConformanceTest, UnfinishedEvaluationsAreListedInOrderOfCreation) {
  for (const char* id : {"z", "a", "m", "b", "y"}) {
    ASSERT_OK(CreateOne(store(), MakeEvaluation(id)));
  }
  ASSERT_OK(Lease(store(), MakeGrant("a", 42)));
  ASSERT_OK(Cancel(store(), "m"));
  ASSERT_OK(Lease(store(), MakeGrant("b", 43)));
  ASSERT_OK(Complete(store(), MakeCompletion("b", 43, MakeOutcome("small", 1))));
  ASSERT_OK_AND_ASSIGN(const std::vector<UnfinishedEvaluation> unfinished,
                       store().ListUnfinished());
  std::vector<std::string> seen;
  for (const UnfinishedEvaluation& one : unfinished) {
    seen.push_back(absl::StrCat(one.evaluation.name(), " ", v1::State_Name(one.evaluation.state()),
                                " ", one.fence));
  }
  EXPECT_THAT(seen, ElementsAre("evaluations/z QUEUED 0", "evaluations/a RUNNING 42",
                                "evaluations/y QUEUED 0"));
}

// --- Leaderboards.

TEST_P(StoreConformanceTest, LeaderboardsRankTheBestOfEachCandidate) {
  int number = 0;
  const auto run = [&](const char* candidate, const char* workload, double median_ns,
                       const std::function<void(NewEvaluation&, Completion&)>& change = nullptr) {
    const std::string id = absl::StrCat("e", number++);
    NewEvaluation evaluation = MakeEvaluation(id, candidate);
    Completion completion = MakeCompletion(id, 1, MakeOutcome(workload, median_ns), number);
    if (change) change(evaluation, completion);
    ASSERT_OK(RunConfirmed(store(), evaluation, completion));
  };
  run("slow", "small", 300);
  run("fast", "small", 200);
  run("fast", "small", 100);
  run("fast", "small", 150);
  run("tied", "small", 100);
  run("slow", "large", 900);
  run("slow", "small", 80, [](auto&, Completion& c) { c.device_class = "cpu-other"; });
  // None of these ranks.
  run("x1", "small", 1, [](NewEvaluation& e, auto&) { e.evaluation.set_level(v1::QUICK); });
  run("x2", "small", 1, [](auto&, Completion& c) { c.outcome.set_verdict(v1::GAMED); });
  run("x3", "small", 1,
      [](auto&, Completion& c) { c.outcome.add_findings()->set_severity(v1::Finding::SUSPECT); });
  run("x4", "small", 0);
  run("x5", "small", std::numeric_limits<double>::quiet_NaN());
  run("x6", "small", -5);
  run("x7", "small", std::numeric_limits<double>::infinity());
  // A notice does not harm.
  run("noted", "small", 250,
      [](auto&, Completion& c) { c.outcome.add_findings()->set_severity(v1::Finding::NOTICE); });

  const auto board = [&](std::string_view problem, std::string_view workload,
                         std::string_view device_class, int entries_max) {
    std::vector<std::string> rows;
    auto entries = store().Leaderboard({.problem = std::string(problem),
                                        .workload = std::string(workload),
                                        .device_class = std::string(device_class),
                                        .entries_max = entries_max});
    EXPECT_OK(entries);
    for (const v1::LeaderboardEntry& entry : *entries) {
      rows.push_back(absl::StrCat(entry.workload(), " ", entry.device_class(), " ", entry.rank(),
                                  " ", entry.candidate_label(), " ", entry.median_ns()));
    }
    return rows;
  };
  EXPECT_THAT(board("problems/gelu", "", "", 10),
              ElementsAre("large cpu-test-avx2 1 slow 900", "small cpu-other 1 slow 80",
                          "small cpu-test-avx2 1 fast 100", "small cpu-test-avx2 2 tied 100",
                          "small cpu-test-avx2 3 noted 250", "small cpu-test-avx2 4 slow 300"));
  EXPECT_EQ(board("", "", "", 10), board("problems/gelu", "", "", 10));
  EXPECT_THAT(board("problems/gelu", "small", "cpu-test-avx2", 2),
              ElementsAre("small cpu-test-avx2 1 fast 100", "small cpu-test-avx2 2 tied 100"));
  EXPECT_THAT(board("problems/gelu", "small", "", 1),
              ElementsAre("small cpu-other 1 slow 80", "small cpu-test-avx2 1 fast 100"));
  EXPECT_THAT(board("problems/gelu", "", "cpu-test-avx2", 1),
              ElementsAre("large cpu-test-avx2 1 slow 900", "small cpu-test-avx2 1 fast 100"));
  EXPECT_THAT(board("problems/none", "", "", 10), IsEmpty());
  EXPECT_THAT(board("problems/gelu", "none", "", 10), IsEmpty());

  ASSERT_OK_AND_ASSIGN(const std::vector<v1::LeaderboardEntry> entries,
                       store().Leaderboard({.problem = "problems/gelu",
                                            .workload = "small",
                                            .device_class = "cpu-test-avx2",
                                            .entries_max = 1}));
  const v1::LeaderboardEntry& best = entries.at(0);
  EXPECT_EQ(best.candidate(), MakeCandidate("fast").name());
  EXPECT_EQ(best.author(), "author of fast");
  EXPECT_EQ(best.model(), "a-model");
  EXPECT_EQ(best.evaluation(), "evaluations/e2");
  EXPECT_EQ(best.efficiency_ratio(), 0.5);
  EXPECT_EQ(best.bound(), "MEMORY");
  EXPECT_EQ(best.runner_spread_ratio(), 0.01);
  EXPECT_EQ(best.baseline(), "plain");
  EXPECT_EQ(best.speedup_ratio(), 3);
  EXPECT_EQ(best.problem_version(), 1);
  EXPECT_THAT(best.complete_time(), EqualsProto(ToTimestamp(TestTime(3))));
}

TEST_P(StoreConformanceTest, LeaderboardsShowTheNewestVersionOfAProblem) {
  ASSERT_OK(RunEvaluation(store(), MakeEvaluation("e1", "old"),
                          MakeCompletion("e1", 1, MakeOutcome("small", 10))));
  // Leased under version 1, completed under version 2: the worker judged version 1.
  ASSERT_OK(CreateOne(store(), MakeEvaluation("e2", "between")));
  ASSERT_OK(Lease(store(), MakeGrant("e2", 1)));
  ASSERT_OK(CreateAdmittedProblem(store(), MakeProblem("gelu", 2, "changed")));
  ASSERT_OK(Complete(store(), MakeCompletion("e2", 1, MakeOutcome("small", 20))));
  EXPECT_THAT(*store().Leaderboard({.problem = "problems/gelu"}), IsEmpty());

  ASSERT_OK(RunEvaluation(store(), MakeEvaluation("e3", "new"),
                          MakeCompletion("e3", 1, MakeOutcome("small", 30))));
  // The lease may say which version the worker was given.
  ASSERT_OK(CreateOne(store(), MakeEvaluation("e4", "pinned")));
  LeaseGrant grant = MakeGrant("e4", 1);
  grant.problem_version = 3;
  EXPECT_THAT(Lease(store(), grant), HasReason("PROBLEM_NOT_FOUND"));
  grant.problem_version = 1;
  ASSERT_OK(Lease(store(), grant));
  ASSERT_OK(Complete(store(), MakeCompletion("e4", 1, MakeOutcome("small", 5))));
  ASSERT_OK_AND_ASSIGN(const std::vector<v1::LeaderboardEntry> entries,
                       store().Leaderboard({.problem = "problems/gelu"}));
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].candidate_label(), "new");
  EXPECT_EQ(entries[0].problem_version(), 2);
}

TEST_P(StoreConformanceTest, ResultsOfAdmittedProblemsAloneRank) {
  const v1::Problem scan = MakeProblem("scan");
  ASSERT_OK(CreateProblem(store(), scan));
  ASSERT_OK(RunEvaluation(store(), MakeEvaluation("e1", "c1", "scan"),
                          MakeCompletion("e1", 1, MakeOutcome("small", 10))));
  const auto ranked = [&] { return store().Leaderboard({.problem = "problems/scan"})->size(); };
  EXPECT_EQ(ranked(), 0u);
  EXPECT_FALSE(store().GetProblem("problems/scan", 0)->has_audit());

  const auto record = [&](const v1::ProblemAudit& audit, double seconds) {
    return Await<v1::Problem>([&](StoreDone<v1::Problem> done) {
      store().RecordProblemAudit(audit, TestTime(seconds), std::move(done));
    });
  };
  v1::ProblemAudit audit;
  audit.set_problem("problems/scan");
  audit.set_problem_version(1);
  audit.set_problem_digest("of something else");
  audit.set_passed(true);
  EXPECT_THAT(record(audit, 1), HasReason("AUDIT_STALE"));
  audit.set_problem_digest(scan.digest());
  audit.set_problem_version(2);
  EXPECT_THAT(record(audit, 1), HasReason("PROBLEM_NOT_FOUND"));
  audit.set_problem("problems/none");
  EXPECT_THAT(record(audit, 1), HasReason("PROBLEM_NOT_FOUND"));
  EXPECT_EQ(ranked(), 0u);

  audit.set_problem("problems/scan");
  audit.set_problem_version(1);
  v1::MutantFamily* family = audit.add_families();
  family->set_mutant_count(5);
  family->set_rejected_count(4);
  ASSERT_OK_AND_ASSIGN(const v1::Problem admitted, record(audit, 1));
  EXPECT_EQ(admitted.audit().state(), v1::ProblemAuditSummary::ADMITTED);
  EXPECT_EQ(admitted.audit().mutant_count(), 5);
  EXPECT_EQ(admitted.audit().mutant_rejected_count(), 4);
  EXPECT_THAT(admitted.audit().time(), EqualsProto(ToTimestamp(TestTime(1))));
  EXPECT_EQ(ranked(), 1u);

  // The newest audit decides.
  audit.set_passed(false);
  audit.add_steps()->set_name("trivial");
  v1::AuditStep* skipped = audit.add_steps();
  skipped->set_name("roofline");
  skipped->set_skipped(true);
  ASSERT_OK(record(audit, 2));
  EXPECT_EQ(ranked(), 0u);
  for (const v1::Problem& problem :
       {*store().GetProblem("problems/scan", 0), store().ListProblems(Page())->items.at(1)}) {
    EXPECT_EQ(problem.audit().state(), v1::ProblemAuditSummary::REFUSED);
    EXPECT_THAT(problem.audit().failed_steps(), ElementsAre("trivial"));
  }
  // Another version has no audit of its own.
  ASSERT_OK(CreateProblem(store(), MakeProblem("scan", 2, "changed")));
  EXPECT_FALSE(store().GetProblem("problems/scan", 0)->has_audit());
  EXPECT_TRUE(store().GetProblem("problems/scan", 1)->has_audit());
}

}  // namespace assay
