// Audits with a judge that is told what to say.
#include "client/audit/audit.h"

#include <functional>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/strings.h"
#include "base/test_matchers.h"
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
    check.set_relative_l2(exact ? 3e-8 : 0.5);
    check.set_element_error_max(exact ? 5e-8 : 0.5);
    if (request.evaluation().level() == v1::QUICK) {
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
    }
    EXPECT_EQ(audit.passed(), !witness);
  }
}

TEST(AuditTest, MutantsThatDoNotCompileCountForNothing) {
  ToldJudge judge([](const std::string& name, v1::Verdict right) {
    return absl::StartsWith(name, "mutant_") ? v1::COMPILE_ERROR : right;
  });
  const v1::ProblemAudit audit = Audited(judge);
  EXPECT_THAT(FailedSteps(audit), ElementsAre("mutants"));  // nothing was shown
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
