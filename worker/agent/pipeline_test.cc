// The pipeline with a fake builder and fake runners: every row of the verdict mapping.
#include "worker/agent/pipeline.h"

#include "base/status.h"
#include "gmock/gmock.h"
#include "worker/agent/canary.h"
#include "worker/agent/verdict.h"
#include "worker/testing/pipeline_fixture.h"

namespace assay {
namespace {

using internal::v1::GuestFault;
using internal::v1::RunnerReport;
using internal::v1::RunnerRequest;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(PipelineTest, VerifiesTheOthersAlongWithTheSelectedAndAllWithTheBattery) {
  ASSERT_OK(Judge());
  EXPECT_EQ(outcome_.verdict(), v1::PASSED) << outcome_.DebugString();
  EXPECT_EQ(outcome_.reason(), "PASSED");
  ASSERT_EQ(runners_.requests.size(), 1u);
  const RunnerRequest& request = runners_.requests[0];
  ASSERT_EQ(request.work_size(), 3);
  EXPECT_EQ(request.work(0).workload().name(), "odd");
  EXPECT_TRUE(request.work(0).battery());
  EXPECT_TRUE(request.work(0).workload().verify_only());
  EXPECT_TRUE(request.work(1).battery());
  EXPECT_FALSE(request.work(1).workload().verify_only());
  EXPECT_FALSE(request.work(1).measure());
  EXPECT_EQ(request.work(1).workload().axes().at("n"), 64);
  EXPECT_EQ(request.problem().files_size(), 0);
  EXPECT_EQ(request.candidate_artifact(), "/artifacts/kernel.cc");
  EXPECT_EQ(request.reference_artifact(), "/artifacts/reference.cc");
  // The selected ones come first in the outcome.
  ASSERT_EQ(outcome_.workload_results_size(), 3);
  EXPECT_EQ(outcome_.workload_results(0).workload(), "main");
  EXPECT_FALSE(outcome_.workload_results(0).has_measurement());
  EXPECT_EQ(outcome_.workload_results(2).workload(), "odd");
  EXPECT_EQ(outcome_.verified_range().elements_max(), 64);
  EXPECT_EQ(outcome_.verified_range().bytes_max(), 256);
  EXPECT_EQ(outcome_.environment().compiler(), "fake++ 1");
  EXPECT_THAT(outcome_.environment().walls(), ElementsAre("seccomp"));
  EXPECT_EQ(outcome_.result_id().size(), 64u);
  EXPECT_EQ(outcome_.env_id().size(), 64u);
  EXPECT_THAT(stages_, ElementsAre("BUILD", "VERIFY"));
  EXPECT_EQ(runners_.refills, 1);
  EXPECT_EQ(runners_.refill_guests, 6);
}

TEST_F(PipelineTest, WorkloadsCanBeSelectedByNameAndAxes) {
  work_.mutable_evaluation()->add_workloads()->set_name("other");
  (*work_.mutable_evaluation()->add_workloads()->mutable_axes())["n"] = 12;
  ASSERT_OK(Judge());
  // For a verdict alone exactly these; before a measurement the problem's others too.
  ASSERT_EQ(outcome_.workload_results_size(), 2);
  EXPECT_EQ(outcome_.workload_results(0).workload(), "other");
  EXPECT_EQ(outcome_.workload_results(1).workload(), "n=12");
  work_.mutable_evaluation()->set_level(v1::QUICK);
  ASSERT_OK(Judge());
  ASSERT_EQ(outcome_.workload_results_size(), 3);
  EXPECT_EQ(outcome_.workload_results(2).workload(), "odd");

  work_.mutable_evaluation()->add_workloads()->set_name("absent");
  ASSERT_OK(Judge());
  EXPECT_EQ(outcome_.verdict(), v1::UNSUPPORTED);
  EXPECT_EQ(outcome_.reason(), "WORKLOAD_INVALID");
}

TEST_F(PipelineTest, TheResultIdFollowsTheContent) {
  ASSERT_OK(Judge());
  const std::string id = outcome_.result_id();
  ASSERT_OK(Judge());
  EXPECT_EQ(outcome_.result_id(), id);  // another nonce, the same result
  work_.mutable_evaluation()->set_level(v1::QUICK);
  ASSERT_OK(Judge());
  EXPECT_NE(outcome_.result_id(), id);
}

TEST_F(PipelineTest, TheContractDecidesTheToleranceAndTheIdentity) {
  ASSERT_OK(Judge());
  EXPECT_EQ(outcome_.contract(), "");
  v1::ArithmeticContract& strict = *work_.mutable_problem()->add_contracts();
  strict.set_name("f32");
  strict.set_accumulator(v1::F32);
  v1::ArithmeticContract& loose = *work_.mutable_problem()->add_contracts();
  loose = strict;
  loose.set_name("tf32");
  loose.add_operand_roundings(v1::ArithmeticContract::TF32);
  auto& instead = *loose.add_tolerances();
  instead.set_tensor("y");
  instead.mutable_tolerance()->set_kind(v1::TolerancePolicy::SCALED);
  instead.mutable_tolerance()->set_relative_l2_max(1e-3);
  instead.mutable_tolerance()->set_element_max(1e-2);
  ASSERT_OK(Judge());
  EXPECT_EQ(outcome_.contract(), "f32");
  const std::string id = outcome_.result_id();
  EXPECT_EQ(runners_.requests.back().problem().tensors(1).tolerance().relative_l2_max(), 1e-6);

  work_.mutable_candidate()->mutable_spec()->set_contract("tf32");
  ASSERT_OK(Judge());
  EXPECT_EQ(outcome_.contract(), "tf32");
  EXPECT_NE(outcome_.result_id(), id);
  const v1::Problem& judged = runners_.requests.back().problem();
  EXPECT_EQ(judged.tensors(1).tolerance().relative_l2_max(), 1e-3);
  ASSERT_EQ(judged.contracts_size(), 1);
  EXPECT_EQ(judged.contracts(0).name(), "tf32");

  work_.mutable_candidate()->mutable_spec()->set_contract("absent");
  ASSERT_OK(Judge());
  EXPECT_EQ(outcome_.verdict(), v1::UNSUPPORTED);
  EXPECT_EQ(outcome_.reason(), "CONTRACT_UNKNOWN");
}

TEST_F(PipelineTest, FaultsMapToVerdicts) {
  const struct {
    GuestFault::Kind kind;
    v1::Verdict verdict;
    const char* reason;
    const char* check = "";
  } rows[] = {
      {GuestFault::LOAD_FAILED, v1::RUNTIME_ERROR, "LOAD_FAILED"},
      {GuestFault::SIGNAL, v1::RUNTIME_ERROR, "CRASHED"},
      {GuestFault::EXITED, v1::RUNTIME_ERROR, "EXITED"},
      {GuestFault::FORBIDDEN_SYSCALL, v1::RUNTIME_ERROR, "FORBIDDEN_SYSCALL"},
      {GuestFault::TIMED_OUT, v1::TIMED_OUT, "TIMED_OUT"},
      {GuestFault::OUT_OF_BOUNDS, v1::UNDEFINED_BEHAVIOR, "OUT_OF_BOUNDS"},
      {GuestFault::INPUT_WRITTEN, v1::UNDEFINED_BEHAVIOR, "INPUT_WRITTEN"},
      {GuestFault::CANARY_BROKEN, v1::UNDEFINED_BEHAVIOR, "CANARY_BROKEN"},
      {GuestFault::MEMORY_LIMIT, v1::RESOURCE_EXCEEDED, "MEMORY_LIMIT"},
      {GuestFault::OUTPUT_FLOOD, v1::RESOURCE_EXCEEDED, "OUTPUT_FLOOD"},
      {GuestFault::HIDDEN_WORK, v1::GAMED, "HIDDEN_WORK"},
      {GuestFault::PROCESS_CREATION, v1::RUNTIME_ERROR, "PROCESS_CREATION"},
      {GuestFault::PLAN_INVALID, v1::COMPILE_ERROR, "KERNEL_NOT_FOUND", "KERNEL_NOT_FOUND"},
      {GuestFault::NOT_EMULATED, v1::UNSUPPORTED, "NOT_EMULATED"},
      {GuestFault::DEVICE_FAULT, v1::UNDEFINED_BEHAVIOR, "SHARED_RACE", "SHARED_RACE"},
      {GuestFault::DEVICE_TRAP, v1::RUNTIME_ERROR, "DEVICE_TRAP"},
      {GuestFault::DRIVER_TOO_OLD, v1::UNSUPPORTED, "DRIVER_TOO_OLD"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.reason);
    runners_.edit = [&row](const RunnerRequest&, RunnerReport* report) {
      GuestFault& fault = *report->mutable_candidate_fault();
      fault.set_kind(row.kind);
      fault.set_message("what the guest said");
      fault.set_workload("main");
      fault.set_input_case("x3");
      fault.set_tensor("y");
      fault.set_byte_offset(256);
      fault.set_check(row.check);
    };
    ASSERT_OK(Judge());
    EXPECT_EQ(outcome_.verdict(), row.verdict);
    EXPECT_EQ(outcome_.reason(), row.reason);
    EXPECT_THAT(outcome_.message(), HasSubstr("main"));
    EXPECT_THAT(outcome_.message(), HasSubstr("what the guest said"));
  }
  // Every kind there is has a row.
  EXPECT_EQ(std::size(rows), static_cast<size_t>(GuestFault::Kind_ARRAYSIZE - 1));
}

// From a runner that is newer than this worker.
TEST_F(PipelineTest, AFaultOfAnUnknownKindIsStillTheCandidates) {
  runners_.edit = [](const RunnerRequest&, RunnerReport* report) {
    report->mutable_candidate_fault()->set_kind(static_cast<GuestFault::Kind>(900));
    report->mutable_candidate_fault()->set_message("something new");
  };
  ASSERT_OK(Judge());
  EXPECT_EQ(outcome_.verdict(), v1::RUNTIME_ERROR);
  EXPECT_EQ(outcome_.reason(), "UNKNOWN_FAULT");
  EXPECT_THAT(outcome_.message(), HasSubstr("something new"));
}

TEST_F(PipelineTest, WrongOutputsMapToVerdicts) {
  const struct {
    const char* reason;
    bool nondeterministic;
    const char* stale;
    v1::Verdict verdict;
    const char* outcome_reason;
  } rows[] = {
      {"MISMATCH", false, "", v1::INCORRECT, "MISMATCH"},
      {"NAN_OUTPUT", false, "", v1::INCORRECT, "NAN_OUTPUT"},
      {"OUTPUT_NOT_WRITTEN", false, "", v1::INCORRECT, "OUTPUT_NOT_WRITTEN"},
      {"MISMATCH", true, "", v1::NONDETERMINISTIC, "MISMATCH"},
      {"MISMATCH", false, "timed call 3", v1::GAMED, "STALE_OUTPUT"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.outcome_reason);
    runners_.edit = [&row](const RunnerRequest&, RunnerReport* report) {
      internal::v1::RunnerWorkloadReport& work = *report->mutable_workloads(1);
      work.set_reason(row.reason);
      work.set_nondeterministic(row.nondeterministic);
      work.set_stale_source(row.stale);
      work.mutable_verification()->set_passed(false);
      work.mutable_verification()->set_failed_case("x3");
      v1::Mismatch& mismatch = *work.mutable_verification()->mutable_first_mismatch();
      mismatch.set_tensor("y");
      mismatch.add_index(3);
      mismatch.set_got(2.5);
      mismatch.set_want(3);
    };
    ASSERT_OK(Judge());
    EXPECT_EQ(outcome_.verdict(), row.verdict) << outcome_.DebugString();
    EXPECT_EQ(outcome_.reason(), row.outcome_reason);
    if (row.verdict == v1::GAMED) {
      ASSERT_EQ(outcome_.findings_size(), 1);
      EXPECT_EQ(outcome_.findings(0).detector(), "stale_output");
      continue;
    }
    EXPECT_THAT(outcome_.message(), HasSubstr("y[3] is 2.5, expected 3"));
    EXPECT_THAT(outcome_.message(), HasSubstr("x3"));
    EXPECT_EQ(outcome_.workload_results(0).verification().failed_case(), "x3");
  }
}

TEST_F(PipelineTest, BuildFailuresMapToVerdicts) {
  const struct {
    const char* reason;
    v1::Verdict verdict;
  } rows[] = {
      {"COMPILE_FAILED", v1::COMPILE_ERROR},        {"WRONG_PROTOTYPE", v1::COMPILE_ERROR},
      {"ENTRY_NOT_FOUND", v1::COMPILE_ERROR},       {"RESERVED_NAME", v1::COMPILE_ERROR},
      {"INCLUDE_FORBIDDEN", v1::COMPILE_ERROR},     {"COMPILER_LIMIT", v1::COMPILE_ERROR},
      {"OPTION_NOT_ALLOWED", v1::COMPILE_ERROR},    {"COMPILE_TIMEOUT", v1::RESOURCE_EXCEEDED},
      {"COMPILE_MEMORY", v1::RESOURCE_EXCEEDED},    {"COMPILE_OUTPUT_FLOOD", v1::RESOURCE_EXCEEDED},
      {"COMPILE_PROCESSES", v1::RESOURCE_EXCEEDED}, {"COMPILE_CPU", v1::RESOURCE_EXCEEDED},
      {"COMPILE_FILE_SIZE", v1::RESOURCE_EXCEEDED}, {"ARTIFACT_TOO_LARGE", v1::RESOURCE_EXCEEDED}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.reason);
    builder_.failures["kernel.cc"] = row.reason;
    ASSERT_OK(Judge());
    EXPECT_EQ(outcome_.verdict(), row.verdict);
    EXPECT_EQ(outcome_.reason(), row.reason);
    EXPECT_THAT(outcome_.message(), HasSubstr("kernel.cc:3:7: expected ';'"));
    ASSERT_EQ(outcome_.build().diagnostics_size(), 1);
    EXPECT_EQ(outcome_.build().diagnostics(0).line(), 3);
    EXPECT_TRUE(runners_.requests.empty());
  }
}

TEST_F(PipelineTest, WhatTheBuilderSaysComesBeforeTheFirstErrors) {
  BuildResult result;
  result.reason = "ENTRY_NOT_FOUND";
  result.message = "no source defines triple; expected: void triple();";
  result.diagnostics.push_back({v1::Diagnostic::ERROR, "", 0, 0, "undefined reference"});
  SetBuildVerdict(result, &outcome_);
  EXPECT_EQ(outcome_.message(),
            "the build failed: no source defines triple; expected: void triple();");
}

TEST_F(PipelineTest, ASickBuilderIsNotACompileError) {
  builder_.statuses["kernel.cc"] =
      ErrorWithReason(absl::StatusCode::kResourceExhausted, "DISK_FULL", "no space left");
  EXPECT_THAT(Judge(), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(outcome_.verdict(), v1::VERDICT_UNSPECIFIED);
}

TEST_F(PipelineTest, ProblemsAtFaultAreInvalidAndNeverTheCandidates) {
  builder_.failures["reference.cc"] = "COMPILE_FAILED";
  ASSERT_OK(Judge());
  EXPECT_EQ(outcome_.verdict(), v1::INVALID_PROBLEM);
  EXPECT_EQ(outcome_.reason(), "REFERENCE_BUILD_FAILED");
  builder_.failures.clear();
  runners_.edit = [](const RunnerRequest&, RunnerReport* report) {
    report->mutable_reference_fault()->set_message("the reference failed: signal 11");
  };
  ASSERT_OK(Judge());
  EXPECT_EQ(outcome_.verdict(), v1::INVALID_PROBLEM);
  EXPECT_EQ(outcome_.reason(), "REFERENCE_FAILED");
  EXPECT_THAT(outcome_.message(), HasSubstr("signal 11"));
}

TEST_F(PipelineTest, WhatThisWorkerCannotBuildIsUnsupported) {
  work_.mutable_candidate()->mutable_spec()->set_language(v1::CUDA_CPP);
  ASSERT_OK(Judge());
  EXPECT_EQ(outcome_.verdict(), v1::UNSUPPORTED);
  EXPECT_EQ(outcome_.reason(), "LANGUAGE_UNSUPPORTED");
  work_.mutable_candidate()->mutable_spec()->set_language(v1::CPP);
  (*work_.mutable_evaluation()->mutable_configuration())["BLOCK"] = 3;
  ASSERT_OK(Judge());
  EXPECT_EQ(outcome_.reason(), "CONFIGURATION_INVALID");
}

TEST_F(PipelineTest, RunnerFailuresAreTheInfrastructures) {
  runners_.status = absl::UnavailableError("the runner ended without a report");
  EXPECT_THAT(Judge(), StatusIs(absl::StatusCode::kUnavailable));
  runners_.status = absl::OkStatus();
  runners_.edit = [](const RunnerRequest&, RunnerReport* report) {
    report->mutable_error()->set_code("RESOURCE_EXHAUSTED");
    report->mutable_error()->set_reason("SANDBOX_FAILED");
    report->mutable_error()->set_message("fork");
  };
  const absl::Status status = Judge();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(GetReason(status), "SANDBOX_FAILED");
}

TEST_F(PipelineTest, AnEvaluationThatTakesTooLongTimesOut) {
  runners_.status = absl::DeadlineExceededError("no report within 5 min");
  ASSERT_OK(Judge());
  EXPECT_EQ(outcome_.verdict(), v1::TIMED_OUT);
  EXPECT_EQ(outcome_.reason(), "EVALUATION_TIMED_OUT");
}

TEST_F(PipelineTest, StopsWhenNobodyWantsTheOutcome) {
  wanted_ = false;
  EXPECT_THAT(Judge(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_TRUE(builder_.requests.empty());
}

TEST_F(PipelineTest, ConfigurationsReachTheBuildAsMacros) {
  v1::TuningParameter& parameter = *work_.mutable_candidate()->mutable_spec()->add_parameters();
  parameter.set_name("BLOCK");
  parameter.add_values(4);
  parameter.add_values(8);
  ASSERT_OK(Judge());
  EXPECT_THAT(builder_.requests[0].macros,
              ElementsAre(std::pair<std::string, int64_t>("BLOCK", 4)));
  (*work_.mutable_evaluation()->mutable_configuration())["BLOCK"] = 8;
  builder_.requests.clear();
  ASSERT_OK(Judge());
  EXPECT_THAT(builder_.requests[0].macros,
              ElementsAre(std::pair<std::string, int64_t>("BLOCK", 8)));
}

TEST_F(PipelineTest, TheCanaryIsAValidProblem) {
  internal::v1::WorkSpec canary;
  MakeCanary(false, &canary);
  EXPECT_OK(ValidateProblem(canary.problem()));
  work_ = canary;
  ASSERT_OK(Judge());
  EXPECT_EQ(outcome_.verdict(), v1::PASSED);
}

}  // namespace
}  // namespace assay
