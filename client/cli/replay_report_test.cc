#include "client/cli/replay_report.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

v1::Evaluation Judged(v1::Verdict verdict, const std::string& reason) {
  v1::Evaluation evaluation;
  evaluation.set_name("evaluations/e1");
  evaluation.mutable_outcome()->set_verdict(verdict);
  evaluation.mutable_outcome()->set_reason(reason);
  return evaluation;
}

void AddFinding(const std::string& detector, const std::string& evidence,
                v1::Evaluation* evaluation) {
  v1::Finding* finding = evaluation->mutable_outcome()->add_findings();
  finding->set_detector(detector);
  finding->set_severity(v1::Finding::SUSPECT);
  finding->set_evidence(evidence);
  finding->set_workload("small");
  finding->set_file("kernel.cc");
  finding->set_line(7);
}

TEST(ReplayReport, TheSameIsTheSameInAnyOrder) {
  v1::Evaluation original = Judged(v1::GAMED, "REPLAY");
  AddFinding("replay", "call 3", &original);
  AddFinding("clock", "line 7", &original);
  v1::Evaluation replay = Judged(v1::GAMED, "REPLAY");
  AddFinding("clock", "line 7", &replay);
  AddFinding("replay", "call 3", &replay);
  const ReplayReport report = CompareReplay(original, replay);
  EXPECT_TRUE(report.same);
  EXPECT_THAT(report.lines, IsEmpty());
  EXPECT_THAT(ReplayText(original, replay, report),
              HasSubstr("same verdict, reason and findings as evaluations/e1: GAMED REPLAY"));
}

TEST(ReplayReport, EachDifferenceIsALine) {
  v1::Evaluation original = Judged(v1::PASSED, "");
  AddFinding("clock", "line 7", &original);
  AddFinding("threads", "8 threads", &original);
  v1::Evaluation replay = Judged(v1::INCORRECT, "MISMATCH");
  AddFinding("threads", "9 threads", &replay);
  AddFinding("threads", "9 threads", &replay);
  replay.mutable_outcome()->mutable_environment()->set_harness_version("2");
  const ReplayReport report = CompareReplay(original, replay);
  EXPECT_FALSE(report.same);
  EXPECT_THAT(
      report.lines,
      ElementsAre("verdict: was PASSED, is INCORRECT MISMATCH",
                  "finding: was SUSPECT clock in small at kernel.cc:7, is gone (line 7)",
                  "evidence of SUSPECT threads in small at kernel.cc:7: was '8 threads', is "
                  "'9 threads'",
                  "finding: is new, SUSPECT threads in small at kernel.cc:7 (9 threads)",
                  "harness: was , is 2"));
  EXPECT_THAT(ReplayText(original, replay, report), HasSubstr("not the same as evaluations/e1"));
}

TEST(ReplayReport, OtherEvidenceIsToldAndIsNoDifference) {
  v1::Evaluation original = Judged(v1::PASSED, "");
  AddFinding("spread", "12 %", &original);
  v1::Evaluation replay = Judged(v1::PASSED, "");
  AddFinding("spread", "13 %\x1b[31m", &replay);
  const ReplayReport report = CompareReplay(original, replay);
  EXPECT_TRUE(report.same);
  EXPECT_EQ(report.lines.size(), 1u);
  EXPECT_THAT(report.lines[0], Not(HasSubstr("\x1b"))) << "candidates write evidence too";
}

TEST(ReplayReport, AnotherReasonIsADifference) {
  EXPECT_FALSE(
      CompareReplay(Judged(v1::INCORRECT, "MISMATCH"), Judged(v1::INCORRECT, "UNWRITTEN")).same);
}

}  // namespace
}  // namespace assay
