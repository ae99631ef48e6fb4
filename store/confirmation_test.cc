#include "store/confirmation.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "store/records.h"
#include "store/testing/builders.h"

namespace assay {
namespace {

using ::assay::testing::MakeEvaluation;
using ::assay::testing::MakeOutcome;
using ::assay::testing::TestTime;
using ::testing::HasSubstr;

v1::Outcome Measured(double median_ns, double spread_ratio, double quartiles_ratio,
                     double handshake_ns = 0) {
  v1::Outcome outcome = MakeOutcome("small", median_ns);
  v1::Measurement* measurement = outcome.mutable_workload_results(0)->mutable_measurement();
  measurement->set_runner_spread_ratio(spread_ratio);
  measurement->set_handshake_ns(handshake_ns);
  measurement->mutable_warm()->set_q1_ns(median_ns * (1 - quartiles_ratio));
  measurement->mutable_warm()->set_q3_ns(median_ns * (1 + quartiles_ratio));
  return outcome;
}

TEST(ConfirmationTest, ASecondRunAgreesWithinNoise) {
  const struct {
    const char* what;
    v1::Outcome first;
    v1::Outcome second;
    Agreement want;
  } cases[] = {
      {"same", Measured(1000, 0, 0), Measured(1000, 0, 0), Agreement::kAgrees},
      {"faster", Measured(1000, 0, 0), Measured(10, 0, 0), Agreement::kAgrees},
      {"5 % slower", Measured(1000, 0, 0), Measured(1050, 0, 0), Agreement::kAgrees},
      {"6 % slower", Measured(1000, 0, 0), Measured(1060, 0, 0), Agreement::kContradicts},
      {"five handshakes", Measured(1000, 0, 0, 20), Measured(1100, 0, 0), Agreement::kAgrees},
      {"six handshakes", Measured(1000, 0, 0, 20), Measured(1120, 0, 0), Agreement::kContradicts},
      {"handshake of the second", Measured(1000, 0, 0), Measured(1100, 0, 0, 20),
       Agreement::kAgrees},
      {"quartiles meet", Measured(1000, 0, 0.1), Measured(1200, 0, 0.1), Agreement::kAgrees},
      {"quartiles apart", Measured(1000, 0, 0.1), Measured(1300, 0, 0.1), Agreement::kContradicts},
      {"runners meet", Measured(1000, 0.1, 0), Measured(1200, 0.1, 0), Agreement::kAgrees},
      {"runners apart", Measured(1000, 0.1, 0), Measured(1300, 0.1, 0), Agreement::kContradicts},
      {"no honest spread is above 1", Measured(1000, 0, 0),
       Measured(5000, std::numeric_limits<double>::quiet_NaN(), 0), Agreement::kContradicts},
      {"nothing measured", Measured(1000, 0, 0), Measured(0, 0, 0), Agreement::kUnknown},
  };
  for (const auto& one : cases) {
    const std::vector<WorkloadAgreement> got = CompareRuns(one.first, one.second);
    ASSERT_EQ(got.size(), 1u) << one.what;
    EXPECT_EQ(got[0].agreement, one.want) << one.what;
    EXPECT_EQ(DisputeNote("evaluations/e-confirmation", one.second, got).empty(),
              one.want != Agreement::kContradicts)
        << one.what;
  }
}

TEST(ConfirmationTest, AVerdictOfTheCandidateContradicts) {
  const v1::Outcome first = MakeOutcome("small", 100);
  for (const auto& [verdict, want] : {std::pair(v1::PASSED, Agreement::kAgrees),
                                      {v1::INCORRECT, Agreement::kContradicts},
                                      {v1::GAMED, Agreement::kContradicts},
                                      {v1::TIMED_OUT, Agreement::kContradicts},
                                      {v1::INVALID_PROBLEM, Agreement::kUnknown},
                                      {v1::UNSUPPORTED, Agreement::kUnknown}}) {
    v1::Outcome second = MakeOutcome("small", 100);
    second.set_verdict(verdict);
    second.set_reason("MISMATCH");
    const auto got = CompareRuns(first, second);
    EXPECT_EQ(got[0].agreement, want) << v1::Verdict_Name(verdict);
  }
  v1::Outcome wrong = MakeOutcome("small", 0);
  wrong.set_verdict(v1::INCORRECT);
  wrong.set_reason("MISMATCH");
  EXPECT_THAT(DisputeNote("evaluations/e-confirmation", wrong, CompareRuns(first, wrong)),
              HasSubstr("evaluations/e-confirmation, was judged INCORRECT MISMATCH (small)"));
  v1::Outcome suspect = MakeOutcome("small", 100);
  suspect.add_findings()->set_severity(v1::Finding::SUSPECT);
  EXPECT_EQ(CompareRuns(first, suspect)[0].agreement, Agreement::kContradicts);
  v1::Outcome slower = MakeOutcome("small", 1000);
  EXPECT_THAT(DisputeNote("e", slower, CompareRuns(first, slower)),
              HasSubstr("small took 100 ns here and 1000 ns there"));
}

TEST(ConfirmationTest, TheSecondRunIsTheSameEvaluationOnTheExactClass) {
  v1::Evaluation first = MakeEvaluation("e1").evaluation;
  (*first.mutable_configuration())["TILE"] = 8;
  first.set_creator("token");
  first.set_priority(-5);
  *first.mutable_outcome() = MakeOutcome("small", 100);
  first.set_state(v1::SUCCEEDED);
  first.set_worker("workers/w1");
  const v1::Evaluation second = MakeConfirmation(first, "cpu-test-avx2", TestTime(50));
  EXPECT_EQ(second.name(), "evaluations/e1-confirmation");
  EXPECT_EQ(second.confirms(), "evaluations/e1");
  EXPECT_EQ(second.candidate(), first.candidate());
  EXPECT_EQ(second.problem(), first.problem());
  EXPECT_EQ(second.workloads_size(), 1);
  EXPECT_EQ(second.configuration().at("TILE"), 8);
  EXPECT_EQ(second.device_class(), "cpu-test-avx2");
  EXPECT_EQ(second.level(), v1::RANKED);
  EXPECT_EQ(second.creator(), "token");
  EXPECT_EQ(second.state(), v1::QUEUED);
  EXPECT_EQ(second.revision(), 1);
  EXPECT_FALSE(second.has_outcome());
  EXPECT_EQ(second.worker(), "");
  EXPECT_GT(second.priority(), first.priority());
  EXPECT_TRUE(CountsForRanks(first));
  EXPECT_FALSE(CountsForRanks(second));
  v1::Evaluation replay = first;
  replay.set_replay_of("evaluations/e0");
  EXPECT_FALSE(CountsForRanks(replay));
  first.set_level(v1::PAIRED);
  EXPECT_FALSE(CountsForRanks(first));
}

}  // namespace
}  // namespace assay
