#include "server/services/admission.h"

#include <cstdlib>
#include <functional>
#include <string>

#include "base/file.h"
#include "base/limits.h"
#include "base/test_matchers.h"
#include "gtest/gtest.h"
#include "server/gate/gate.h"
#include "server/services/test_problem.h"

namespace assay {
namespace {

class AdmissionTest : public ::testing::Test {
 protected:
  AdmissionTest() {
    v1::Problem problem = TwiceProblem();
    problem.set_digest("d");
    v1::Workload* ragged = problem.add_workloads();
    ragged->set_name("ragged");
    ragged->set_verify_only(true);
    (*ragged->mutable_axes())["n"] = 13;
    catalogue_.Put(problem);
    stored_ = TwiceCandidate();
    stored_.set_name("candidates/00112233445566778899aabbccddeeff");
  }

  static v1::CreateEvaluationRequest InlineRequest() {
    v1::CreateEvaluationRequest request;
    request.mutable_evaluation()->set_problem("problems/twice");
    *request.mutable_candidate() = TwiceCandidate();
    return request;
  }

  absl::StatusOr<NewEvaluation> Admit(const v1::CreateEvaluationRequest& request,
                                      const v1::Candidate* stored = nullptr,
                                      const v1::Candidate* baseline = nullptr) {
    v1::CreateEvaluationRequest consumed = request;
    return admission_.Admit(&consumed, stored, baseline);
  }

  FakeClock clock_;
  Catalogue catalogue_;
  EvaluationIds ids_{&clock_};
  Admission admission_{{.clock = &clock_, .catalogue = &catalogue_, .ids = &ids_}};
  v1::Candidate stored_;
};

TEST_F(AdmissionTest, ResolvesAnInlineCandidate) {
  v1::CreateEvaluationRequest request = InlineRequest();
  request.mutable_candidate()->mutable_spec()->clear_problem();
  request.set_request_id("r-1");
  // Output-only fields that a client sends are dropped.
  request.mutable_evaluation()->set_name("evaluations/mine");
  request.mutable_evaluation()->set_state(v1::SUCCEEDED);
  request.mutable_evaluation()->mutable_outcome()->set_verdict(v1::PASSED);
  request.mutable_evaluation()->set_attempt_count(7);
  request.mutable_candidate()->set_digest("mine");
  request.mutable_candidate()->set_name("candidates/mine");
  ASSERT_OK_AND_ASSIGN(const NewEvaluation got, Admit(request));
  const v1::Evaluation& evaluation = got.evaluation;
  EXPECT_EQ(evaluation.state(), v1::QUEUED);
  EXPECT_EQ(evaluation.problem(), "problems/twice");
  EXPECT_EQ(evaluation.device_class(), "cpu");
  EXPECT_EQ(evaluation.level(), v1::QUICK);
  EXPECT_EQ(evaluation.candidate_label(), "plain");
  EXPECT_FALSE(evaluation.has_outcome());
  EXPECT_EQ(evaluation.attempt_count(), 0);
  EXPECT_NE(evaluation.name(), "evaluations/mine");
  EXPECT_OK(CheckResourceName("evaluations/", evaluation.name()));
  EXPECT_EQ(evaluation.create_time().seconds(), absl::ToUnixSeconds(clock_.Now()));
  ASSERT_TRUE(got.candidate.has_value());
  EXPECT_EQ(got.candidate->spec().problem(), "twice");
  EXPECT_EQ(got.candidate->digest().size(), 64u);
  EXPECT_EQ(got.candidate->name(), "candidates/" + got.candidate->digest().substr(0, 32));
  EXPECT_EQ(evaluation.candidate(), got.candidate->name());
  EXPECT_EQ(got.request_id, "r-1");
  EXPECT_EQ(got.request_digest.size(), 64u);
}

TEST_F(AdmissionTest, TakesAStoredCandidateByName) {
  v1::CreateEvaluationRequest request;
  request.mutable_evaluation()->set_candidate(stored_.name());
  request.mutable_evaluation()->add_workloads()->set_name("small");
  (*request.mutable_evaluation()->add_workloads()->mutable_axes())["n"] = 77;
  ASSERT_OK_AND_ASSIGN(const NewEvaluation got, Admit(request, &stored_));
  EXPECT_FALSE(got.candidate.has_value());
  EXPECT_EQ(got.evaluation.problem(), "problems/twice");
  EXPECT_EQ(got.evaluation.candidate(), stored_.name());
  EXPECT_EQ(got.evaluation.workloads_size(), 2);
  EXPECT_TRUE(got.request_id.empty());
}

TEST_F(AdmissionTest, AWorkloadThatIsOnlyVerifiedGoesWithOneThatIsMeasured) {
  v1::CreateEvaluationRequest request = InlineRequest();
  EXPECT_OK(Admit(request));  // all of the problem's
  request.mutable_evaluation()->add_workloads()->set_name("ragged");
  request.mutable_evaluation()->set_level(v1::VERIFY);
  EXPECT_OK(Admit(request));
  request.mutable_evaluation()->set_level(v1::RANKED);
  EXPECT_THAT(Admit(request), HasReason("NOTHING_TO_MEASURE"));
  request.mutable_evaluation()->add_workloads()->set_name("small");
  EXPECT_OK(Admit(request));
  // The same axes, but not the workload that is only verified.
  request.mutable_evaluation()->clear_workloads();
  (*request.mutable_evaluation()->add_workloads()->mutable_axes())["n"] = 13;
  EXPECT_OK(Admit(request));
}

TEST_F(AdmissionTest, ResolvesConfigurationAndPairs) {
  v1::CreateEvaluationRequest request = InlineRequest();
  v1::TuningParameter* parameter = request.mutable_candidate()->mutable_spec()->add_parameters();
  parameter->set_name("BLOCK");
  parameter->add_values(16);
  parameter->add_values(32);
  request.mutable_candidate()->mutable_spec()->add_constraints("BLOCK > 16");
  request.mutable_evaluation()->set_level(v1::PAIRED);
  *request.mutable_baseline_candidate() = TwiceCandidate("twice", "// other\n");
  ASSERT_OK_AND_ASSIGN(NewEvaluation got, Admit(request));
  EXPECT_EQ(got.evaluation.configuration().at("BLOCK"), 32);
  EXPECT_EQ(got.evaluation.pair_count(), kGatePairsDefault);
  ASSERT_TRUE(got.baseline_candidate.has_value());
  EXPECT_EQ(got.evaluation.baseline_candidate(), got.baseline_candidate->name());
  EXPECT_NE(got.evaluation.baseline_candidate(), got.evaluation.candidate());
  (*request.mutable_evaluation()->mutable_configuration())["BLOCK"] = 16;
  EXPECT_THAT(Admit(request), HasReason("CONFIGURATION_INVALID"));
}

TEST_F(AdmissionTest, TheSameRequestHasTheSameDigestAndOthersDiffer) {
  v1::CreateEvaluationRequest request = InlineRequest();
  request.set_request_id("r");
  ASSERT_OK_AND_ASSIGN(const NewEvaluation first, Admit(request));
  clock_.Advance(absl::Hours(1));
  ASSERT_OK_AND_ASSIGN(const NewEvaluation again, Admit(request));
  EXPECT_EQ(first.request_digest, again.request_digest);
  EXPECT_NE(first.evaluation.name(), again.evaluation.name());
  request.mutable_candidate()->mutable_files(0)->mutable_content()->append("// changed\n");
  ASSERT_OK_AND_ASSIGN(const NewEvaluation changed, Admit(request));
  EXPECT_NE(first.request_digest, changed.request_digest);
}

TEST_F(AdmissionTest, RefusesWithAReason) {
  struct Case {
    std::string reason;
    absl::StatusCode code;
    std::function<void(v1::CreateEvaluationRequest*)> change;
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  constexpr auto kNotFound = absl::StatusCode::kNotFound;
  using Request = v1::CreateEvaluationRequest;
  const Case cases[] = {
      {"REQUEST_ID_INVALID", kInvalid,
       [](Request* r) { r->set_request_id(std::string(limits::kRequestIdBytesMax + 1, 'a')); }},
      {"REQUEST_ID_INVALID", kInvalid, [](Request* r) { r->set_request_id("a b"); }},
      {"REQUEST_ID_INVALID", kInvalid, [](Request* r) { r->set_request_id("\xc3\xa4"); }},
      {"CANDIDATE_MISSING", kInvalid, [](Request* r) { r->clear_candidate(); }},
      {"CANDIDATE_AMBIGUOUS", kInvalid,
       [](Request* r) { r->mutable_evaluation()->set_candidate("candidates/aa"); }},
      {"CANDIDATE_NOT_FOUND", kNotFound,
       [](Request* r) {
         r->clear_candidate();
         r->mutable_evaluation()->set_candidate("candidates/aa");
       }},
      {"NAME_INVALID", kInvalid,
       [](Request* r) {
         r->clear_candidate();
         r->mutable_evaluation()->set_candidate("candidates/../x");
       }},
      {"PROBLEM_MISMATCH", kInvalid,
       [](Request* r) { r->mutable_evaluation()->set_problem("problems/gelu"); }},
      {"PROBLEM_NOT_FOUND", kNotFound,
       [](Request* r) {
         r->mutable_evaluation()->clear_problem();
         r->mutable_candidate()->mutable_spec()->set_problem("gelu");
       }},
      {"PROBLEM_MISSING", kInvalid,
       [](Request* r) {
         r->mutable_evaluation()->clear_problem();
         r->mutable_candidate()->mutable_spec()->clear_problem();
       }},
      {"WORKLOAD_NOT_FOUND", kNotFound,
       [](Request* r) { r->mutable_evaluation()->add_workloads()->set_name("huge"); }},
      {"WORKLOAD_INVALID", kInvalid,
       [](Request* r) { (*r->mutable_evaluation()->add_workloads()->mutable_axes())["m"] = 1; }},
      {"WORKLOAD_INVALID", kInvalid,
       [](Request* r) { (*r->mutable_evaluation()->add_workloads()->mutable_axes())["n"] = 0; }},
      {"WORKLOAD_DUPLICATE", kInvalid,
       [](Request* r) {
         r->mutable_evaluation()->add_workloads()->set_name("small");
         r->mutable_evaluation()->add_workloads()->set_name("small");
       }},
      {"WORKLOAD_DUPLICATE", kInvalid,
       [](Request* r) {
         r->mutable_evaluation()->add_workloads()->set_name("small");
         (*r->mutable_evaluation()->add_workloads()->mutable_axes())["n"] = 1024;
       }},
      {"WORKLOAD_DUPLICATE", kInvalid,
       [](Request* r) {
         (*r->mutable_evaluation()->add_workloads()->mutable_axes())["n"] = 77;
         (*r->mutable_evaluation()->add_workloads()->mutable_axes())["n"] = 77;
       }},
      {"NOTHING_TO_MEASURE", kInvalid,
       [](Request* r) { r->mutable_evaluation()->add_workloads()->set_name("ragged"); }},
      {"NOTHING_TO_MEASURE", kInvalid,
       [](Request* r) {
         r->mutable_evaluation()->set_level(v1::PAIRED);
         *r->mutable_baseline_candidate() = TwiceCandidate();
         r->mutable_evaluation()->add_workloads()->set_name("ragged");
       }},
      {"TOO_MANY_WORKLOADS", kInvalid,
       [](Request* r) {
         for (size_t i = 0; i <= limits::kWorkloadsPerEvaluationMax; ++i) {
           (*r->mutable_evaluation()->add_workloads()->mutable_axes())["n"] = i + 1;
         }
       }},
      {"DEVICE_CLASS_INVALID", kInvalid,
       [](Request* r) { r->mutable_evaluation()->set_device_class("tpu"); }},
      {"DEVICE_CLASS_INVALID", kInvalid,
       [](Request* r) { r->mutable_evaluation()->set_device_class("cpu x"); }},
      {"DEVICE_CLASS_INVALID", kInvalid,
       [](Request* r) {
         r->mutable_evaluation()->set_device_class("cpu-" + std::string(100, 'x'));
       }},
      {"LANGUAGE_UNSUPPORTED", kInvalid,
       [](Request* r) { r->mutable_evaluation()->set_device_class("cuda"); }},
      {"LEVEL_INVALID", kInvalid,
       [](Request* r) { r->mutable_evaluation()->set_level(static_cast<v1::Level>(99)); }},
      {"PRIORITY_INVALID", kInvalid,
       [](Request* r) { r->mutable_evaluation()->set_priority(limits::kPriorityMax + 1); }},
      {"BASELINE_MISSING", kInvalid,
       [](Request* r) { r->mutable_evaluation()->set_level(v1::PAIRED); }},
      {"BASELINE_UNEXPECTED", kInvalid,
       [](Request* r) { *r->mutable_baseline_candidate() = TwiceCandidate(); }},
      {"PAIR_COUNT_INVALID", kInvalid,
       [](Request* r) {
         r->mutable_evaluation()->set_level(v1::PAIRED);
         *r->mutable_baseline_candidate() = TwiceCandidate();
         r->mutable_evaluation()->set_pair_count(limits::kPairCountMax + 1);
       }},
      {"CONFIGURATION_INVALID", kInvalid,
       [](Request* r) { (*r->mutable_evaluation()->mutable_configuration())["BLOCK"] = 1; }},
      {"CANDIDATE_MALFORMED", kInvalid,
       [](Request* r) { r->mutable_candidate()->mutable_files(0)->set_path("../kernel.cc"); }},
      {"SOURCE_NOT_UTF8", kInvalid,
       [](Request* r) { r->mutable_candidate()->mutable_files(0)->set_content("\xff\xfe"); }},
      {"CANDIDATE_TOO_LARGE", kInvalid,
       [](Request* r) {
         r->mutable_candidate()->mutable_files(0)->set_content(
             std::string(limits::kSourceBytesMax + 1, ' '));
       }},
  };
  const char* source_dir = std::getenv("ASSAY_SOURCE_DIR");
  std::string table;
  if (source_dir != nullptr) {
    ASSERT_OK_AND_ASSIGN(table, ReadFile(std::string(source_dir) + "/proto/README.md", 1 << 20));
  }
  for (const Case& c : cases) {
    if (source_dir != nullptr) {
      EXPECT_NE(table.find(c.reason), std::string::npos) << c.reason << " is not documented";
    }
    v1::CreateEvaluationRequest request = InlineRequest();
    c.change(&request);
    const auto got = Admit(request);
    EXPECT_THAT(got, HasReason(c.reason));
    EXPECT_THAT(got, StatusIs(c.code)) << c.reason;
    EXPECT_FALSE(got.status().message().empty()) << c.reason;
  }
}

TEST_F(AdmissionTest, DeviceLanguagesNeedADevice) {
  v1::CreateEvaluationRequest request = InlineRequest();
  request.mutable_candidate()->mutable_spec()->set_language(v1::CUDA_CPP);
  request.mutable_candidate()->mutable_files(0)->set_path("kernel.cu");
  v1::Launch* launch = request.mutable_candidate()->mutable_spec()->mutable_plan()->add_launches();
  launch->set_kernel("twice");
  launch->add_grid("ceil_div(n, 128)");
  launch->add_block("128");
  launch->add_args("a");
  launch->add_args("c");
  launch->add_args("n");
  EXPECT_THAT(Admit(request), HasReason("LANGUAGE_UNSUPPORTED"));
  request.mutable_evaluation()->set_device_class("emulated:sm_80");
  EXPECT_THAT(Admit(request), IsOk());
}

// A device-tier candidate of "twice" with a parameter and a workspace, right in every name.
v1::Candidate PlannedCandidate() {
  v1::Candidate candidate = TwiceCandidate();
  v1::CandidateSpec* spec = candidate.mutable_spec();
  spec->set_language(v1::CUDA_CPP);
  candidate.mutable_files(0)->set_path("kernel.cu");
  v1::TuningParameter* parameter = spec->add_parameters();
  parameter->set_name("BLOCK");
  parameter->add_values(128);
  v1::Workspace* workspace = spec->mutable_plan()->add_workspaces();
  workspace->set_name("scratch");
  workspace->set_bytes("4 * n");
  v1::Launch* launch = spec->mutable_plan()->add_launches();
  launch->set_kernel("twice");
  launch->add_grid("ceil_div(n, BLOCK)");
  launch->add_block("BLOCK");
  launch->set_shared_bytes("4 * BLOCK");
  for (const char* argument : {"a", "c", "scratch", "n"}) launch->add_args(argument);
  return candidate;
}

TEST_F(AdmissionTest, NamesOfTheCandidateMustFitTheProblem) {
  v1::CreateEvaluationRequest request;
  request.mutable_evaluation()->set_device_class("cuda");
  *request.mutable_candidate() = PlannedCandidate();
  ASSERT_OK(Admit(request));
  using Spec = v1::CandidateSpec;
  const struct {
    const char* message;  // part of it
    std::function<void(Spec*)> change;
  } cases[] = {
      {"parameter 'n' takes a name of the problem",
       [](Spec* s) { s->mutable_parameters(0)->set_name("n"); }},
      {"parameter 'a' takes a name of the problem",
       [](Spec* s) { s->mutable_parameters(0)->set_name("a"); }},
      {"parameter 'twice' takes a name of the problem",
       [](Spec* s) { s->mutable_parameters(0)->set_name("twice"); }},
      {"workspace 'c' takes a name of the problem",
       [](Spec* s) { s->mutable_plan()->mutable_workspaces(0)->set_name("c"); }},
      {"workspace 'scratch': '4*m' uses 'm'",
       [](Spec* s) { s->mutable_plan()->mutable_workspaces(0)->set_bytes("4*m"); }},
      {"plan.launches[0]: 'rows' uses 'rows'",
       [](Spec* s) { s->mutable_plan()->mutable_launches(0)->set_grid(0, "rows"); }},
      {"plan.launches[0]: 'TILE' uses 'TILE'",
       [](Spec* s) { s->mutable_plan()->mutable_launches(0)->set_block(0, "TILE"); }},
      {"plan.launches[0]: 'a' uses 'a'",
       [](Spec* s) { s->mutable_plan()->mutable_launches(0)->set_shared_bytes("a"); }},
      {"plan.launches[0].args: 'b' uses 'b'",
       [](Spec* s) { s->mutable_plan()->mutable_launches(0)->set_args(1, "b"); }},
      {"plan.launches[0].args: 'a+n' uses 'a'",
       [](Spec* s) { s->mutable_plan()->mutable_launches(0)->set_args(0, "a+n"); }},
  };
  for (const auto& c : cases) {
    v1::CreateEvaluationRequest changed = request;
    c.change(changed.mutable_candidate()->mutable_spec());
    v1::Candidate candidate = changed.candidate();
    for (const absl::Status& got :
         {Admit(changed).status(), admission_.AdmitCandidate("", &candidate)}) {
      EXPECT_THAT(got, HasReason("CANDIDATE_MALFORMED")) << c.message;
      EXPECT_THAT(got, StatusIs(absl::StatusCode::kInvalidArgument)) << c.message;
      EXPECT_NE(got.message().find(c.message), absl::string_view::npos) << got;
    }
  }
}

TEST_F(AdmissionTest, BothOfAPairAreHeldToOneContract) {
  v1::Problem problem = TwiceProblem();
  for (const char* name : {"f32", "tf32"}) {
    problem.add_contracts()->set_name(name);
    problem.mutable_contracts()->rbegin()->set_accumulator(v1::F32);
  }
  catalogue_.Put(problem);
  v1::CreateEvaluationRequest request = InlineRequest();
  request.mutable_evaluation()->set_level(v1::PAIRED);
  *request.mutable_baseline_candidate() = TwiceCandidate("twice", "// other\n");
  ASSERT_OK(Admit(request));
  request.mutable_candidate()->mutable_spec()->set_contract("f32");  // the first, named
  ASSERT_OK(Admit(request));
  request.mutable_candidate()->mutable_spec()->set_contract("tf32");
  EXPECT_THAT(Admit(request), HasReason("CONTRACT_MISMATCH"));
  request.mutable_baseline_candidate()->mutable_spec()->set_contract("tf32");
  ASSERT_OK(Admit(request));
  request.mutable_candidate()->mutable_spec()->set_contract("f64");
  EXPECT_THAT(Admit(request), HasReason("CONTRACT_UNKNOWN"));
}

TEST_F(AdmissionTest, AStoredCandidateMayBeOlderThanTheProblem) {
  v1::Candidate old = stored_;
  old.mutable_spec()->add_parameters()->set_name("m");
  old.mutable_spec()->mutable_parameters(0)->add_values(1);
  v1::CreateEvaluationRequest request;
  request.mutable_evaluation()->set_candidate(old.name());
  v1::CreateEvaluationRequest paired = request;
  paired.mutable_evaluation()->set_level(v1::PAIRED);
  paired.mutable_evaluation()->set_baseline_candidate(old.name());
  ASSERT_OK(Admit(request, &old));
  ASSERT_OK(Admit(paired, &stored_, &old));
  v1::Problem next = TwiceProblem("twice", 2);
  next.add_axes()->set_name("m");
  catalogue_.Put(next);
  EXPECT_THAT(Admit(request, &old), HasReason("CANDIDATE_MALFORMED"));
  const absl::Status refused = Admit(paired, &stored_, &old).status();
  EXPECT_THAT(refused, HasReason("CANDIDATE_MALFORMED"));
  EXPECT_NE(refused.message().find("baseline_candidate"), absl::string_view::npos) << refused;
}

TEST(CheckResourceNameTest, SaysWhatAnIdIs) {
  const struct {
    std::string id;
    std::string shown;  // "" when it is accepted
  } cases[] = {
      {std::string(limits::kNameBytesMax, 'x'), ""},
      {std::string(limits::kNameBytesMax + 1, 'x'), "x...' is not"},
      {"", "'evaluations/' is not"},
      {"a/b", "'evaluations/a/b' is not"},
      {"\xc3\xa4", "'evaluations/\\xc3\\xa4' is not"},
  };
  for (const auto& c : cases) {
    const absl::Status status = CheckResourceName("evaluations/", "evaluations/" + c.id);
    if (c.shown.empty()) {
      EXPECT_OK(status);
      continue;
    }
    EXPECT_THAT(status, HasReason("NAME_INVALID"));
    EXPECT_NE(status.message().find(c.shown), absl::string_view::npos) << status;
    EXPECT_NE(status.message().find("an id of 1 to 64 letters"), absl::string_view::npos) << status;
  }
}

TEST_F(AdmissionTest, ChecksProblems) {
  v1::Problem problem = TwiceProblem();
  problem.set_name("twice");
  ASSERT_OK(admission_.AdmitProblem(&problem));
  EXPECT_EQ(problem.name(), "problems/twice");
  EXPECT_EQ(problem.digest().size(), 64u);
  problem = TwiceProblem();
  problem.clear_reference();
  EXPECT_THAT(admission_.AdmitProblem(&problem), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(admission_.AdmitProblem(&problem), HasReason("PROBLEM_INVALID"));
  problem = TwiceProblem();
  problem.mutable_files(0)->set_content(std::string(limits::kProblemBytesMax + 1, ' '));
  EXPECT_THAT(admission_.AdmitProblem(&problem), HasReason("PROBLEM_TOO_LARGE"));
  problem = TwiceProblem();
  problem.set_name("problems/a/b");
  EXPECT_THAT(admission_.AdmitProblem(&problem), HasReason("NAME_INVALID"));
}

}  // namespace
}  // namespace assay
