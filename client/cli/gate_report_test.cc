#include "client/cli/gate_report.h"

#include "client/cli/exit_code.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::Evaluation Finished(v1::Verdict verdict, const std::string& reason = "",
                        const std::string& message = "") {
  v1::Evaluation evaluation;
  evaluation.set_worker("workers/w1");
  evaluation.set_state(v1::SUCCEEDED);
  evaluation.mutable_outcome()->set_verdict(verdict);
  evaluation.mutable_outcome()->set_reason(reason);
  evaluation.mutable_outcome()->set_message(message);
  return evaluation;
}

void AddPairs(int count, double ratio, v1::Evaluation* evaluation) {
  for (int i = 0; i < count; ++i) {
    v1::RunnerPair* pair = evaluation->mutable_outcome()->add_pairs();
    pair->set_workload("small");
    pair->set_baseline_ns(1000);
    pair->set_candidate_ns(1000 * ratio);
  }
}

v1::GateReport Decide(const v1::Evaluation& evaluation) {
  v1::GateReport report;
  DecideReport(GateOptions(), evaluation, "some/base.cc", &report);
  return report;
}

TEST(GateReport, TellsWhoIsAtFault) {
  const struct {
    v1::Verdict verdict;
    const char* reason;
    v1::GateReport::Decision decision;
    int exit_code;
  } cases[] = {
      {v1::INCORRECT, "MISMATCH", v1::GateReport::NOT_CORRECT, kExitNotPassed},
      {v1::COMPILE_ERROR, "COMPILE_FAILED", v1::GateReport::NOT_CORRECT, kExitNotPassed},
      {v1::INVALID_PROBLEM, "BASELINE_FAILED", v1::GateReport::BASELINE_INVALID, kExitError},
      {v1::INVALID_PROBLEM, "REFERENCE_FAILED", v1::GateReport::PROBLEM_INVALID, kExitError},
  };
  for (const auto& c : cases) {
    const v1::GateReport report = Decide(Finished(c.verdict, c.reason, "y[3] is wrong"));
    EXPECT_EQ(report.decision(), c.decision) << c.reason;
    EXPECT_EQ(ExitCodeOf(report), c.exit_code) << c.reason;
    EXPECT_THAT(report.explanation(), HasSubstr(c.reason));
    EXPECT_THAT(report.explanation(), HasSubstr("y[3] is wrong"));
    const bool names_baseline = report.decision() == v1::GateReport::BASELINE_INVALID;
    EXPECT_EQ(report.explanation().find("some/base.cc") != std::string::npos, names_baseline);
  }
}

TEST(GateReport, DecidesOnPairs) {
  v1::Evaluation equal = Finished(v1::PASSED);
  AddPairs(16, 1, &equal);
  EXPECT_EQ(ExitCodeOf(Decide(equal)), kExitPassed);
  v1::Evaluation slower = Finished(v1::PASSED);
  AddPairs(16, 1.5, &slower);
  EXPECT_EQ(ExitCodeOf(Decide(slower)), kExitRegression);
}

TEST(GateReport, AnUndecidedOneSaysWhy) {
  const v1::GateReport empty = Decide(Finished(v1::PASSED));
  EXPECT_EQ(ExitCodeOf(empty), kExitInconclusive);
  EXPECT_EQ(empty.explanation(), "no workload was measured");
  v1::Evaluation few = Finished(v1::PASSED);
  AddPairs(kGatePairsMin - 1, 1, &few);
  const v1::GateReport undecided = Decide(few);
  EXPECT_EQ(ExitCodeOf(undecided), kExitInconclusive);
  EXPECT_EQ(undecided.explanation(), "not decided: small");
  few.mutable_outcome()->add_workload_results()->mutable_measurement()->add_caveats(
      "NOISY_ENVIRONMENT");
  EXPECT_EQ(ExitCodeOf(Decide(few)), kExitInvalidEnvironment);
  EXPECT_THAT(Decide(few).explanation(), HasSubstr("quiet machine"));
}

TEST(GateMarkdown, ShowsTheNumbersAndADashWithoutThem) {
  v1::Evaluation equal = Finished(v1::PASSED);
  AddPairs(16, 1, &equal);
  const std::string text = GateMarkdown(Decide(equal));
  EXPECT_THAT(text, HasSubstr("| ` small ` | PASS | 1.0000 | 1.0000 to 1.0000 | 16 | "));
  EXPECT_THAT(text, HasSubstr("slower by 0.50 % is tolerated, 2.00 % is to be found"));
  EXPECT_THAT(text, HasSubstr("Judged on ` workers/w1 `"));

  // Nothing was measured: the margins are the tier's all the same.
  EXPECT_THAT(GateMarkdown(Decide(Finished(v1::INCORRECT, "MISMATCH", "wrong"))),
              HasSubstr("slower by 0.50 % is tolerated"));
  v1::Evaluation broken = Finished(v1::PASSED);
  AddPairs(1, 0, &broken);
  EXPECT_THAT(GateMarkdown(Decide(broken)),
              HasSubstr("| ` small ` | INCONCLUSIVE | - | - | 0 | - |\n"));
}

TEST(GateMarkdown, TextOfOthersHasNoEffect) {
  v1::GateReport report = Decide(
      Finished(v1::COMPILE_ERROR, "COMPILE_FAILED",
               "a.cc:1: error: #error\n```\n# PASS\n<b>@all</b> [x](http://y)\n````\x1b[2J"));
  const std::string text = GateMarkdown(report);
  // The fence is longer than every run of backticks in the text, so nothing closes it early.
  EXPECT_THAT(text, HasSubstr("`````text\nCOMPILE_ERROR COMPILE_FAILED: a.cc:1: error"));
  EXPECT_THAT(text, HasSubstr("\n````\\x1b[2J\n`````\n"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));

  v1::GateReport::Workload* workload = report.add_workloads();
  workload->set_workload("a`b`` | c\n<i>");
  workload->set_explanation("why\n# not\\|");
  const std::string table = GateMarkdown(report);
  EXPECT_THAT(table, HasSubstr("| ``` a`b`` \xc2\xa6 c <i> ``` | "));
  EXPECT_THAT(table, HasSubstr(": ` why # not\\\xc2\xa6 `\n"));
}

}  // namespace
}  // namespace assay
