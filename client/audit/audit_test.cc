// Audits with a judge that is told what to say.
#include "client/audit/audit.h"

#include <functional>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/strings.h"
#include "base/test_matchers.h"
#include "client/audit/generate.h"
#include "client/audit/report.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/problem.h"
#include "kernels/testing/problems.h"

namespace assay {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

v1::TolerancePolicy ScaledTolerance() {
  const v1::Problem problem = testing::ScaleRowsProblem();
  for (const v1::Tensor& tensor : problem.tensors()) {
    if (tensor.role() == v1::Tensor::OUTPUT) return ToleranceOf(problem, tensor);
  }
  return {};
}

// Knows by the label what a candidate is.
class ToldJudge final : public AuditJudge {
 public:
  using Opinion = std::function<v1::Verdict(const std::string& name, v1::Verdict right)>;
  explicit ToldJudge(Opinion opinion) : opinion_(std::move(opinion)) {}

  absl::StatusOr<std::vector<v1::Evaluation>> Judge(
      const std::vector<v1::CreateEvaluationRequest>& requests) override {
    if (!error.ok()) return error;
    std::vector<v1::Evaluation> evaluations;
    for (const v1::CreateEvaluationRequest& request : requests) {
      ++judged;
      evaluations.push_back(JudgeOne(request));
    }
    return evaluations;
  }

  absl::Status error;
  bool timed = true;
  double honest_error = 3e-8;
  std::string near_family = "none";  // mutants of it are off by 1.5 tolerances
  int judged = 0;
  std::set<std::string> names;

 private:
  v1::Evaluation JudgeOne(const v1::CreateEvaluationRequest& request) {
    const v1::CandidateSpec& spec = request.candidate().spec();
    EXPECT_EQ(spec.problem(), "scale_rows");
    EXPECT_EQ(spec.origin().strategy(), "audit");
    EXPECT_GT(request.evaluation().workloads_size(), 0);
    const std::string name = spec.label().substr(6);  // "audit-"
    EXPECT_EQ(request.evaluation().device_class(), spec.language() == v1::CPP ? "cpu" : "emulated");
    names.insert(name);
    const bool honest = name == "oracle" || name == "oracle_twice" ||
                        absl::StartsWith(name, "candidates_") || absl::StrContains(name, "_half");
    const bool wrong = absl::StartsWith(name, "candidates_wrong_");
    const v1::Verdict right = honest && !wrong ? v1::PASSED : v1::INCORRECT;
    v1::Evaluation evaluation;
    evaluation.set_state(v1::SUCCEEDED);
    v1::Outcome& outcome = *evaluation.mutable_outcome();
    outcome.set_verdict(opinion_(name, right));
    outcome.set_reason("TOLD");
    v1::WorkloadResult& result = *outcome.add_workload_results();
    result.set_workload("small");
    v1::OutputCheck& check = *result.mutable_verification()->add_outputs();
    check.set_tensor("y");
    const bool passed = outcome.verdict() == v1::PASSED;
    const bool exact = passed && spec.contract() != "narrow";
    check.set_relative_l2(exact ? honest_error : 0.5);
    check.set_element_error_max(exact ? honest_error : 0.5);
    if (absl::EndsWith(name, near_family) && !passed) {
      check.set_relative_l2(ScaledTolerance().relative_l2_max() * 1.5);
      check.set_element_error_max(ScaledTolerance().element_max() * 1.5);
    }
    if (request.evaluation().level() == v1::QUICK && timed) {
      result.mutable_measurement()->set_median_ns(1e5);
      result.mutable_measurement()->set_handshake_ns(300);
      result.set_efficiency_ratio(0.5);
    }
    return evaluation;
  }

  const Opinion opinion_;
};

AuditMaterial Material() {
  AuditMaterial material;
  material.problem = testing::ScaleRowsProblem();
  material.problem.set_digest(ProblemDigest(material.problem));
  const auto candidate = [](const char* name, const char* body) {
    AuditCandidate made;
    made.name = name;
    made.candidate.mutable_spec()->set_language(v1::CPP);
    v1::SourceFile* file = made.candidate.add_files();
    file->set_path("x.cc");
    file->set_content(
        absl::StrCat("extern \"C\" void scale_rows(const float* x, const float* s, float* y,"
                     " int64_t rows, int64_t cols) {",
                     body, "}"));
    return made;
  };
  material.honest.push_back(candidate(
      "candidates/plain.cc",
      "for (int64_t i = 0; i < rows; ++i) for (int64_t j = 0; j < cols; ++j) y[i * cols + j] ="
      " s[i] * x[i * cols + j];"));
  material.wrong.push_back(candidate("candidates_wrong/none.cc", ""));
  material.wrong.push_back(candidate("candidates_wrong/none.cu", ""));
  material.wrong.back().candidate.mutable_spec()->set_language(v1::CUDA_CPP);
  return material;
}

v1::ProblemAudit Audited(ToldJudge& judge) {
  AuditOptions options;
  options.harness_version = "h";
  options.emulated_class = "emulated";
  auto audit = AuditProblem(Material(), options, &judge);
  EXPECT_OK(audit);
  return audit.ok() ? *audit : v1::ProblemAudit();
}

std::vector<std::string> FailedSteps(const v1::ProblemAudit& audit) {
  std::vector<std::string> names;
  for (const v1::AuditStep& step : audit.steps()) {
    if (!step.passed() && !step.skipped()) names.push_back(step.name());
  }
  return names;
}

v1::Verdict Right(const std::string&, v1::Verdict right) { return right; }

TEST(AuditTest, AdmitsAProblemWhoseVerdictsAreRight) {
  ToldJudge judge(Right);
  const v1::ProblemAudit audit = Audited(judge);
  EXPECT_THAT(FailedSteps(audit), IsEmpty());
  EXPECT_TRUE(audit.passed());
  EXPECT_EQ(audit.problem(), "problems/scale_rows");
  EXPECT_EQ(audit.problem_digest(), Material().problem.digest());
  EXPECT_EQ(audit.steps_size(), 16);
  int generated = 0;
  for (const v1::MutantFamily& family : audit.families()) generated += family.generated_count();
  EXPECT_GE(generated, 40);
  EXPECT_LE(generated, 80);
  for (const char* name : {"zeros", "ones", "nan", "nothing", "mean", "noise", "other_inputs",
                           "copy_of_x", "copy_of_s", "stale", "first_row", "three_in_a_thousand",
                           "x_block", "s_last", "axis_rows", "axis_cols", "y_norm_twice"}) {
    EXPECT_EQ(judge.names.count(name), 1u) << name;
  }
}

TEST(AuditTest, ErrorsOfAnotherContractSayNothingOfTheFirstsTolerance) {
  AuditMaterial material = Material();
  material.problem.clear_contracts();
  material.problem.add_contracts()->set_name("wide");
  material.problem.add_contracts()->set_name("narrow");
  material.honest.push_back(material.honest[0]);
  material.honest[1].name = "candidates/narrow.cc";
  material.honest[1].candidate.mutable_spec()->set_contract("narrow");
  ToldJudge judge(Right);
  AuditOptions options;
  options.emulated_class = "emulated";
  const auto audit = AuditProblem(material, options, &judge);
  ASSERT_OK(audit);
  EXPECT_THAT(FailedSteps(*audit), IsEmpty());
}

TEST(AuditTest, EveryWrongVerdictFailsTheStepThatItIsOf) {
  struct Case {
    const char* name;
    v1::Verdict verdict;
    const char* step;
  };
  const Case cases[] = {
      {"oracle", v1::INCORRECT, "oracle"},
      {"oracle", v1::INVALID_PROBLEM, "oracle"},
      {"oracle_twice", v1::NONDETERMINISTIC, "oracle"},
      {"candidates_plain.cc", v1::INCORRECT, "honest"},
      {"zeros", v1::PASSED, "trivial"},
      {"stale", v1::PASSED, "trivial"},
      {"zeros", v1::COMPILE_ERROR, "trivial"},
      {"x_last", v1::PASSED, "sensitivity"},
      {"axis_cols", v1::PASSED, "sensitivity"},
      {"y_row_half", v1::INCORRECT, "liveness"},
      {"y_element_twice", v1::PASSED, "liveness"},
      {"candidates_wrong_none.cc", v1::PASSED, "self_hosting"},
      {"candidates_wrong_none.cu", v1::PASSED, "self_hosting"},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    ToldJudge judge([&](const std::string& name, v1::Verdict right) {
      return name == one.name ? one.verdict : right;
    });
    const v1::ProblemAudit audit = Audited(judge);
    EXPECT_FALSE(audit.passed());
    EXPECT_THAT(FailedSteps(audit), Contains(one.step));
  }
}

// A tolerance that is too narrow shows in some draws only.
TEST(AuditTest, OneRejectionOfAnHonestCandidateInTenRefuses) {
  int judged = 0;
  ToldJudge judge([&](const std::string& name, v1::Verdict right) {
    const bool unlucky = name == "candidates_plain.cc" && ++judged == 7;
    return unlucky ? v1::INCORRECT : right;
  });
  const v1::ProblemAudit audit = Audited(judge);
  EXPECT_FALSE(audit.passed());
  EXPECT_THAT(FailedSteps(audit), ElementsAre("honest", "validity"));
  for (const v1::AuditStep& step : audit.steps()) {
    if (step.name() != "honest") continue;
    EXPECT_THAT(step.failures(), ElementsAre(HasSubstr(": INCORRECT (TOLD), 1x")));
    EXPECT_THAT(step.summary(), HasSubstr("1 rejected of 10 judgements of 1 candidates"));
  }
}

// With a witness a mutant that passes is a survivor; without one it counts for nothing.
TEST(AuditTest, SurvivorsNeedAWitness) {
  for (const bool witness : {true, false}) {
    SCOPED_TRACE(witness);
    ToldJudge judge([&](const std::string& name, v1::Verdict right) {
      if (absl::StartsWith(name, "mutant_") && absl::EndsWith(name, "_index")) return v1::PASSED;
      if (absl::StartsWith(name, "witness_")) return witness ? v1::INCORRECT : v1::PASSED;
      return right;
    });
    const v1::ProblemAudit audit = Audited(judge);
    for (const v1::MutantFamily& family : audit.families()) {
      if (family.name() != "index") continue;
      EXPECT_GT(family.generated_count(), 2);
      EXPECT_EQ(family.rejected_count(), 0);
      EXPECT_EQ(family.mutant_count(), witness ? family.generated_count() : 0);
      EXPECT_EQ(family.discarded_count(), witness ? 0 : family.generated_count());
      EXPECT_EQ(family.survivors_size(), family.mutant_count());
      EXPECT_EQ(family.without_witness_size(), family.discarded_count());
      EXPECT_EQ(family.uncompiled_count(), 0);
      EXPECT_EQ(absl::StrContains(AuditMarkdown(audit), "* without witness (index): "), !witness);
    }
    EXPECT_EQ(audit.passed(), !witness);
  }
}

TEST(AuditTest, MutantsThatDoNotCompileCountForNothing) {
  ToldJudge judge([](const std::string& name, v1::Verdict right) {
    return absl::StartsWith(name, "mutant_") ? v1::COMPILE_ERROR : right;
  });
  const v1::ProblemAudit audit = Audited(judge);
  EXPECT_THAT(FailedSteps(audit), ElementsAre("op_deletion", "mutants"));  // nothing was shown
  for (const v1::MutantFamily& family : audit.families()) {
    EXPECT_EQ(family.uncompiled_count(), family.generated_count());
    EXPECT_EQ(family.discarded_count(), family.generated_count());
    EXPECT_EQ(family.without_witness_size(), 0);
  }
}

std::string FailuresOf(const v1::ProblemAudit& audit, const std::string& name) {
  std::string text;
  for (const v1::AuditStep& step : audit.steps()) {
    if (step.name() == name) absl::StrAppend(&text, absl::StrJoin(step.failures(), "\n"));
  }
  return text;
}
std::string SummaryOf(const v1::ProblemAudit& audit, const std::string& name) {
  for (const v1::AuditStep& step : audit.steps()) {
    if (step.name() == name) return step.summary();
  }
  return "";
}

// A machine that is too busy rejects nothing; an endless loop is a slip like others.
TEST(AuditTest, RunningOutOfTimeOrMemoryRejectsMutantsOnly) {
  struct Case {
    const char* name;
    const char* step;
  };
  for (const v1::Verdict verdict : {v1::TIMED_OUT, v1::RESOURCE_EXCEEDED}) {
    for (const Case& one :
         {Case{"zeros", "trivial"}, Case{"x_last", "sensitivity"},
          Case{"y_element_twice", "liveness"}, Case{"candidates_wrong_none.cc", "self_hosting"}}) {
      SCOPED_TRACE(one.name);
      ToldJudge judge([&](const std::string& name, v1::Verdict right) {
        return name == one.name ? verdict : right;
      });
      const v1::ProblemAudit audit = Audited(judge);
      EXPECT_THAT(FailedSteps(audit), ElementsAre(one.step));
      EXPECT_THAT(FailuresOf(audit, one.step), HasSubstr("not judged"));
    }
    ToldJudge judge([&](const std::string& name, v1::Verdict right) {
      return absl::StartsWith(name, "mutant_") ? verdict : right;
    });
    EXPECT_THAT(FailedSteps(Audited(judge)), IsEmpty());
  }
}

TEST(AuditTest, AReferenceWithoutAStatementToLeaveOutIsNotAdmitted) {
  AuditMaterial material = Material();
  for (v1::SourceFile& file : *material.problem.mutable_files()) {
    if (file.path() == "reference.cc") file.set_content("extern \"C\" void scale_rows() {}\n");
  }
  ToldJudge judge(Right);
  const auto audit = AuditProblem(material, AuditOptions(), &judge);
  ASSERT_OK(audit);
  EXPECT_THAT(FailedSteps(*audit), ElementsAre("op_deletion"));
  EXPECT_THAT(FailuresOf(*audit, "op_deletion"), HasSubstr("no statement"));
}

TEST(AuditTest, WithoutTimesWhatTimesTellFails) {
  ToldJudge untimed(Right);
  untimed.timed = false;
  EXPECT_THAT(FailedSteps(Audited(untimed)), ElementsAre("size", "roofline", "metamorphic"));

  AuditMaterial material = Material();
  material.honest.clear();
  ToldJudge judge(Right);
  const auto audit = AuditProblem(material, AuditOptions(), &judge);
  ASSERT_OK(audit);
  EXPECT_THAT(FailedSteps(*audit),
              ElementsAre("honest", "validity", "size", "roofline", "metamorphic"));
}

TEST(AuditTest, OnlyNearMissesAndAnEmulatedDeviceMayBeMissing) {
  AuditMaterial material = Material();
  material.wrong.clear();
  ToldJudge judge(Right);
  const auto audit = AuditProblem(material, AuditOptions(), &judge);
  ASSERT_OK(audit);
  EXPECT_TRUE(audit->passed());
  for (const v1::AuditStep& step : audit->steps()) {
    const bool may = step.name() == "work_model" || step.name() == "self_hosting";
    EXPECT_EQ(step.skipped(), may) << step.name();
    EXPECT_FALSE(step.summary().empty()) << step.name();
  }
}

TEST(AuditTest, SaysWhenNothingIsTransformed) {
  for (const bool transforms : {true, false}) {
    AuditMaterial material = Material();
    material.problem.clear_transforms();
    if (transforms) material.problem.add_transforms();
    ToldJudge judge(Right);
    const auto audit = AuditProblem(material, AuditOptions(), &judge);
    ASSERT_OK(audit);
    EXPECT_EQ(absl::StrContains(SummaryOf(*audit, "metamorphic"), "no transforms"), !transforms);
  }
}

// Those of a size of their own are exempt.
TEST(AuditTest, UniversalMutantsAreSeparatedFromTheTolerance) {
  ToldJudge judge(Right);
  judge.near_family = "_universal";
  const v1::ProblemAudit audit = Audited(judge);
  EXPECT_THAT(FailedSteps(audit), ElementsAre("separation"));
  const std::string failures = FailuresOf(audit, "separation");
  EXPECT_THAT(failures, HasSubstr("every 64th element is 0 is off by 1.5 tolerances only"));
  EXPECT_THAT(failures, Not(HasSubstr("a hundredth larger")));
  EXPECT_THAT(failures, Not(HasSubstr("the other sign")));
}

TEST(AuditTest, ExactHonestResultsDoNotMakeEveryBitCount) {
  ToldJudge judge(Right);
  judge.honest_error = 0;
  const std::string summary = SummaryOf(Audited(judge), "separation");
  EXPECT_THAT(summary, HasSubstr("honest errors are exactly 0"));
  EXPECT_THAT(summary, Not(HasSubstr("every bit")));
}

TEST(AuditTest, InfrastructureIsNoVerdict) {
  ToldJudge judge(Right);
  judge.error = absl::UnavailableError("no worker");
  EXPECT_FALSE(AuditProblem(Material(), AuditOptions(), &judge).ok());
}

TEST(AuditTest, ReportsSayEverythingButTheTime) {
  ToldJudge judge([](const std::string& name, v1::Verdict right) {
    return name == "zeros" ? v1::PASSED : right;
  });
  v1::ProblemAudit audit = Audited(judge);
  audit.mutable_time()->set_seconds(1700000000);
  EXPECT_THAT(AuditMarkdown(audit), HasSubstr("* trivial: zeros: PASSED (TOLD)"));
  EXPECT_THAT(AuditMarkdown(audit), HasSubstr("| precision |"));
  EXPECT_EQ(AuditTextProto(audit).find("1700000000"), std::string::npos);
  EXPECT_THAT(AuditTextProto(audit), HasSubstr("problem: \"problems/scale_rows\""));
}

}  // namespace
}  // namespace assay
