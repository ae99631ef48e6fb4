#include "client/cli/report.h"

#include "client/cli/exit_code.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

v1::Evaluation Finished(v1::Verdict verdict) {
  v1::Evaluation evaluation;
  evaluation.set_name("evaluations/e1");
  evaluation.set_problem("problems/gelu");
  evaluation.set_candidate("candidates/0123456789abcdef");
  evaluation.set_state(v1::SUCCEEDED);
  evaluation.mutable_outcome()->set_verdict(verdict);
  return evaluation;
}

TEST(Report, ShowsTheFirstMismatchAndTheFailingInputs) {
  v1::Evaluation evaluation = Finished(v1::INCORRECT);
  evaluation.mutable_outcome()->set_reason("MISMATCH");
  v1::WorkloadResult* result = evaluation.mutable_outcome()->add_workload_results();
  result->set_workload("small");
  v1::Verification* verification = result->mutable_verification();
  verification->set_failed_case("x3");
  verification->add_outputs()->set_tensor("y");
  verification->mutable_outputs(0)->set_wrong_count(5);
  verification->mutable_outputs(0)->set_element_count(12);
  v1::Mismatch* mismatch = verification->mutable_first_mismatch();
  mismatch->set_tensor("y");
  mismatch->add_index(7);
  mismatch->set_got(1.5);
  mismatch->set_want(2.5);
  const std::string report = EvaluationReport(evaluation);
  EXPECT_THAT(report, HasSubstr("gelu/01234567"));
  EXPECT_THAT(report, HasSubstr("INCORRECT MISMATCH"));
  EXPECT_THAT(report, HasSubstr("inputs 'x3'; first at y[7]: got 1.5, want 2.5"));
  EXPECT_THAT(report, HasSubstr("5 of 12 elements wrong"));
}

TEST(Report, SaysWhatSecondRunsAndReplaysAre) {
  v1::Evaluation evaluation = Finished(v1::PASSED);
  evaluation.mutable_outcome()->set_message("every output was right");
  EXPECT_THAT(EvaluationReport(evaluation), Not(HasSubstr("every output")));
  evaluation.mutable_outcome()->set_message(
      "every output was right\nNot ranked: the second run was slower");
  EXPECT_THAT(EvaluationReport(evaluation), HasSubstr("  Not ranked: the second run was slower"));
  evaluation.set_confirms("evaluations/e0");
  EXPECT_THAT(EvaluationReport(evaluation), HasSubstr("second run of evaluations/e0"));
  evaluation.set_replay_of("evaluations/e9");
  EXPECT_THAT(EvaluationReport(evaluation), HasSubstr("replays evaluations/e9"));
}

TEST(Report, ShowsTimesAgainstTheLimit) {
  v1::Evaluation evaluation = Finished(v1::PASSED);
  v1::WorkloadResult* result = evaluation.mutable_outcome()->add_workload_results();
  result->set_workload("large");
  result->mutable_measurement()->set_median_ns(2e6);
  result->mutable_measurement()->mutable_warm()->set_median_ns(2e6);
  result->mutable_ceiling()->set_bound(v1::Ceiling::MEMORY);
  result->mutable_ceiling()->set_time_ns(1.8e6);
  result->set_efficiency_ratio(0.9);
  v1::BaselineResult* baseline = result->add_baselines();
  baseline->set_name("openblas");
  baseline->set_speedup_ratio(1.25);
  result->mutable_measurement()->set_stop_reason(v1::TIME_LIMIT);
  result->mutable_measurement()->add_caveats("GOVERNOR_UNKNOWN");
  v1::WorkloadResult* small = evaluation.mutable_outcome()->add_workload_results();
  small->mutable_measurement()->add_caveats("GOVERNOR_UNKNOWN");
  small->mutable_measurement()->add_caveats("NOT_ISOLATED");
  evaluation.set_worker("workers/w1");
  const std::string report = EvaluationReport(evaluation);
  EXPECT_THAT(report, HasSubstr("time limit"));
  EXPECT_THAT(report,
              HasSubstr("measured on workers/w1; caveats: GOVERNOR_UNKNOWN, NOT_ISOLATED\n"));
  EXPECT_THAT(report, HasSubstr("2 ms"));
  EXPECT_THAT(report, HasSubstr("90.0 %"));
  EXPECT_THAT(report, HasSubstr("MEMORY bound, limit 1.8 ms"));
  EXPECT_THAT(report, HasSubstr("1.25x openblas"));
}

TEST(Report, ShowsWhatWasCounted) {
  v1::Evaluation evaluation = Finished(v1::PASSED);
  EXPECT_THAT(EvaluationReport(evaluation), Not(HasSubstr("counted")));
  v1::WorkloadResult* result = evaluation.mutable_outcome()->add_workload_results();
  result->set_workload("square");
  v1::ObservedWork* work = result->mutable_observed();
  work->set_f32_flops(2'500'000);
  work->set_tensor_flops(512);
  work->set_global_load_bytes(3000);
  work->set_global_store_bytes(1000);
  work->set_global_sectors(300);
  work->set_global_sectors_least(200);
  work->set_shared_accesses(8);
  work->set_shared_bank_conflicts(2);
  work->set_branches(1200);
  work->set_divergent_branches(3);
  work->set_barriers(16);
  work->set_arithmetic_intensity(0.25);
  work->set_declared_intensity(0.125);
  const std::string report = EvaluationReport(evaluation);
  EXPECT_THAT(report, ContainsRegex("square +2.5 M +512 +4.0 kB +0.25 +0.125 +1.50x least "
                                    "+0.25/access +3 of 1.2 k +16\n"));
  // A kernel without shared memory has no conflicts, not none of nothing.
  work->clear_shared_accesses();
  work->clear_declared_intensity();
  EXPECT_THAT(EvaluationReport(evaluation), ContainsRegex("0.25 +- +1.50x least +- +3 of"));
}

TEST(Report, CandidateTextIsEscaped) {
  v1::Evaluation evaluation = Finished(v1::COMPILE_ERROR);
  v1::Diagnostic* diagnostic = evaluation.mutable_outcome()->mutable_build()->add_diagnostics();
  diagnostic->set_file("a.cc");
  diagnostic->set_line(3);
  diagnostic->set_severity(v1::Diagnostic::ERROR);
  diagnostic->set_message("bad \x1b[2J");
  const std::string report = EvaluationReport(evaluation);
  EXPECT_THAT(report, HasSubstr("a.cc:3: ERROR: bad \\x1b[2J"));
  EXPECT_THAT(report, Not(HasSubstr("\x1b[2J")));
}

TEST(Report, ADiagnosticSaysOnlyWhatIsKnownOfItsPlace) {
  const struct {
    const char* file;
    int line;
    int column;
    const char* shown;
  } rows[] = {
      {"", 0, 0, "\n  ERROR: text\n"},
      {"", 0, 5, "\n  ERROR: text\n"},
      {"", 7, 5, "\n  line 7:5: ERROR: text\n"},
      {"a.cc", 0, 0, "\n  a.cc: ERROR: text\n"},
      {"a.cc", 7, 0, "\n  a.cc:7: ERROR: text\n"},
      {"a.cc", 7, 5, "\n  a.cc:7:5: ERROR: text\n"},
  };
  for (const auto& row : rows) {
    v1::Evaluation evaluation = Finished(v1::COMPILE_ERROR);
    v1::Diagnostic* diagnostic = evaluation.mutable_outcome()->mutable_build()->add_diagnostics();
    diagnostic->set_file(row.file);
    diagnostic->set_line(row.line);
    diagnostic->set_column(row.column);
    diagnostic->set_severity(v1::Diagnostic::ERROR);
    diagnostic->set_message("text");
    EXPECT_THAT(EvaluationReport(evaluation), HasSubstr(row.shown));
  }
}

TEST(Report, ManyDiagnosticsAreCut) {
  v1::Evaluation evaluation = Finished(v1::COMPILE_ERROR);
  for (int i = 0; i < 40; ++i) {
    v1::Diagnostic* diagnostic = evaluation.mutable_outcome()->mutable_build()->add_diagnostics();
    diagnostic->set_file("a.cc");
    diagnostic->set_line(i);
    diagnostic->set_severity(i % 2 == 0 ? v1::Diagnostic::WARNING : v1::Diagnostic::ERROR);
    diagnostic->set_message("text");
  }
  const std::string report = EvaluationReport(evaluation);
  EXPECT_THAT(report, HasSubstr("a.cc:4: WARNING"));
  EXPECT_THAT(report, Not(HasSubstr("a.cc:6: WARNING")));
  EXPECT_THAT(report, HasSubstr("a.cc:19: ERROR"));
  EXPECT_THAT(report, Not(HasSubstr("a.cc:21: ERROR")));
  EXPECT_THAT(report, HasSubstr("and 27 more diagnostics"));
}

TEST(Report, ExitCodes) {
  EXPECT_EQ(ExitCodeOf(Finished(v1::PASSED)), kExitPassed);
  EXPECT_EQ(ExitCodeOf(Finished(v1::GAMED)), kExitNotPassed);
  EXPECT_EQ(ExitCodeOf(Finished(v1::INVALID_PROBLEM)), kExitError);
  v1::Evaluation failed;
  failed.set_state(v1::FAILED);
  EXPECT_EQ(ExitCodeOf(failed), kExitError);
}

}  // namespace
}  // namespace assay
