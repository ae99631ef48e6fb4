#include "store/testing/builders.h"

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/status.h"
#include "base/strings.h"
#include "store/records.h"

namespace assay::testing {

absl::Time TestTime(double seconds) {
  return absl::FromUnixSeconds(1'700'000'000) + absl::Seconds(seconds);
}

v1::Problem MakeProblem(std::string_view name, int version, std::string_view content) {
  v1::Problem problem;
  problem.set_name(absl::StrCat("problems/", Av(name)));
  problem.set_version(version);
  problem.set_summary(std::string(content));
  v1::SourceFile* file = problem.add_files();
  file->set_path("reference.cc");
  file->set_content(absl::StrCat("// ", Av(content)));
  problem.set_digest(Sha256Hex(absl::StrCat(Av(name), "\n", version, "\n", Av(content))));
  *problem.mutable_create_time() = ToTimestamp(TestTime(0));
  return problem;
}

v1::Candidate MakeCandidate(std::string_view id, std::string_view problem) {
  v1::Candidate candidate;
  std::string name = absl::StrCat("candidates/", Av(id));
  name.resize(std::max(name.size(), std::string_view("candidates/").size() + 32), 'x');
  candidate.set_name(name);
  candidate.set_digest(Sha256Hex(name));
  candidate.mutable_spec()->set_problem(std::string(problem));
  candidate.mutable_spec()->set_language(v1::CPP);
  candidate.mutable_spec()->set_label(std::string(id));
  candidate.mutable_spec()->mutable_origin()->set_author(absl::StrCat("author of ", Av(id)));
  candidate.mutable_spec()->mutable_origin()->set_model("a-model");
  v1::SourceFile* file = candidate.add_files();
  file->set_path("kernel.cc");
  file->set_content(absl::StrCat("// ", Av(id)));
  *candidate.mutable_create_time() = ToTimestamp(TestTime(0));
  return candidate;
}

NewEvaluation MakeEvaluation(std::string_view id, std::string_view candidate,
                             std::string_view problem, double seconds) {
  NewEvaluation made;
  made.candidate = MakeCandidate(candidate, problem);
  v1::Evaluation& evaluation = made.evaluation;
  evaluation.set_name(absl::StrCat("evaluations/", Av(id)));
  evaluation.set_candidate(made.candidate->name());
  evaluation.set_problem(absl::StrCat("problems/", Av(problem)));
  evaluation.add_workloads()->set_name("small");
  evaluation.set_device_class("cpu");
  evaluation.set_level(v1::RANKED);
  evaluation.set_state(v1::QUEUED);
  evaluation.set_candidate_label(std::string(candidate));
  *evaluation.mutable_create_time() = ToTimestamp(TestTime(seconds));
  return made;
}

v1::Outcome MakeOutcome(std::string_view workload, double median_ns) {
  v1::Outcome outcome;
  outcome.set_verdict(v1::PASSED);
  outcome.set_message("every output was right");
  outcome.mutable_build()->set_compiler("g++ 12");
  outcome.mutable_build()->set_log("build log");
  outcome.set_output_log("output log");
  v1::WorkloadResult* result = outcome.add_workload_results();
  result->set_workload(std::string(workload));
  result->mutable_verification()->set_passed(true);
  v1::Measurement* measurement = result->mutable_measurement();
  measurement->set_median_ns(median_ns);
  measurement->mutable_warm()->set_q1_ns(median_ns * 0.9);
  measurement->mutable_warm()->set_median_ns(median_ns);
  measurement->mutable_warm()->set_q3_ns(median_ns * 1.1);
  measurement->set_runner_count(2);
  measurement->set_runner_spread_ratio(0.01);
  for (int runner = 0; runner < 2; ++runner) {
    v1::RunnerSamples* samples = measurement->add_runners();
    for (int i = 0; i < 5; ++i) samples->add_warm_ns(median_ns + i + runner / 8.0);
    samples->add_cold_ns(2 * median_ns);
    samples->set_stop_reason(v1::CONVERGED);
    samples->set_context_switches(runner);
    samples->set_handshake_ns(160.5);
    samples->set_warmup_calls(7);
  }
  result->mutable_ceiling()->set_bound(v1::Ceiling::MEMORY);
  result->mutable_ceiling()->set_time_ns(median_ns / 2);
  result->set_efficiency_ratio(0.5);
  v1::BaselineResult* baseline = result->add_baselines();
  baseline->set_name("plain");
  baseline->set_median_ns(3 * median_ns);
  baseline->set_speedup_ratio(3);
  return outcome;
}

LeaseGrant MakeGrant(std::string_view id, int64_t fence, int attempt, double seconds) {
  LeaseGrant grant;
  grant.evaluation = absl::StrCat("evaluations/", Av(id));
  grant.worker = "workers/w1";
  grant.fence = fence;
  grant.attempt = attempt;
  grant.time = TestTime(seconds);
  return grant;
}

Completion MakeCompletion(std::string_view id, int64_t fence, v1::Outcome outcome, double seconds) {
  Completion completion;
  completion.evaluation = absl::StrCat("evaluations/", Av(id));
  completion.fence = fence;
  completion.outcome = std::move(outcome);
  completion.timeline.mutable_build()->set_seconds(2);
  completion.device_class = "cpu-test-avx2";
  completion.time = TestTime(seconds);
  return completion;
}

absl::StatusOr<v1::Problem> CreateProblem(Store& store, v1::Problem problem) {
  return Await<v1::Problem>([&](StoreDone<v1::Problem> done) {
    store.CreateProblem(std::move(problem), std::move(done));
  });
}

v1::ProblemAudit MakeAudit(const v1::Problem& problem, bool passed) {
  v1::ProblemAudit audit;
  audit.set_problem(problem.name());
  audit.set_problem_version(problem.version());
  audit.set_problem_digest(problem.digest());
  audit.set_passed(passed);
  return audit;
}

absl::StatusOr<v1::Problem> RecordAudit(Store& store, const v1::Problem& problem, bool passed) {
  return Await<v1::Problem>([&](StoreDone<v1::Problem> done) {
    store.RecordProblemAudit(MakeAudit(problem, passed), TestTime(0), std::move(done));
  });
}

absl::StatusOr<v1::Problem> CreateAdmittedProblem(Store& store, const v1::Problem& problem) {
  ASSAY_RETURN_IF_ERROR(CreateProblem(store, problem).status());
  return RecordAudit(store, problem, true);
}

absl::StatusOr<v1::Candidate> CreateCandidate(Store& store, v1::Candidate candidate,
                                              std::string fingerprint) {
  return Await<v1::Candidate>([&](StoreDone<v1::Candidate> done) {
    store.CreateCandidate(std::move(candidate), std::move(fingerprint), std::move(done));
  });
}

absl::StatusOr<std::vector<CreatedEvaluation>> CreateEvaluations(
    Store& store, std::vector<NewEvaluation> evaluations) {
  return Await<std::vector<CreatedEvaluation>>([&](StoreDone<std::vector<CreatedEvaluation>> done) {
    store.CreateEvaluations(std::move(evaluations), std::move(done));
  });
}

absl::StatusOr<CreatedEvaluation> CreateOne(Store& store, NewEvaluation evaluation) {
  std::vector<NewEvaluation> evaluations;
  evaluations.push_back(std::move(evaluation));
  ASSAY_ASSIGN_OR_RETURN(std::vector<CreatedEvaluation> created,
                         CreateEvaluations(store, std::move(evaluations)));
  if (created.size() != 1) return absl::InternalError("not one evaluation");
  return std::move(created[0]);
}

absl::StatusOr<v1::Evaluation> Lease(Store& store, LeaseGrant grant) {
  return Await<v1::Evaluation>([&](StoreDone<v1::Evaluation> done) {
    store.RecordLease(std::move(grant), std::move(done));
  });
}

absl::StatusOr<CompletionRecord> Complete(Store& store, Completion completion) {
  return Await<CompletionRecord>([&](StoreDone<CompletionRecord> done) {
    store.RecordCompletion(std::move(completion), std::move(done));
  });
}

absl::StatusOr<v1::Evaluation> EndAttempt(Store& store, AttemptEnd end) {
  return Await<v1::Evaluation>([&](StoreDone<v1::Evaluation> done) {
    store.RecordAttemptEnd(std::move(end), std::move(done));
  });
}

absl::StatusOr<v1::Evaluation> Cancel(Store& store, std::string_view id, double seconds) {
  return Await<v1::Evaluation>([&](StoreDone<v1::Evaluation> done) {
    store.RecordCancel(absl::StrCat("evaluations/", Av(id)), TestTime(seconds), std::move(done));
  });
}

absl::StatusOr<CompletionRecord> RunEvaluation(Store& store, NewEvaluation evaluation,
                                               Completion completion) {
  LeaseGrant grant;
  grant.evaluation = evaluation.evaluation.name();
  grant.worker = "workers/w1";
  grant.fence = 1;
  grant.attempt = 1;
  grant.time = completion.time - absl::Seconds(1);
  ASSAY_RETURN_IF_ERROR(CreateOne(store, std::move(evaluation)).status());
  ASSAY_RETURN_IF_ERROR(Lease(store, std::move(grant)).status());
  completion.fence = 1;
  return Complete(store, std::move(completion));
}

absl::StatusOr<CompletionRecord> RunConfirmed(Store& store, NewEvaluation evaluation,
                                              Completion completion, v1::Outcome second) {
  completion.may_confirm = true;
  Completion confirming = completion;
  confirming.outcome = std::move(second);
  ASSAY_ASSIGN_OR_RETURN(CompletionRecord record,
                         RunEvaluation(store, std::move(evaluation), std::move(completion)));
  if (!record.confirmation.has_value()) return record;
  LeaseGrant grant;
  grant.evaluation = record.confirmation->name();
  grant.worker = "workers/w2";
  grant.fence = confirming.fence = 1;
  grant.attempt = 1;
  grant.time = confirming.time;
  confirming.evaluation = grant.evaluation;
  ASSAY_RETURN_IF_ERROR(Lease(store, std::move(grant)).status());
  ASSAY_RETURN_IF_ERROR(Complete(store, std::move(confirming)).status());
  return record;
}

absl::StatusOr<CompletionRecord> RunConfirmed(Store& store, NewEvaluation evaluation,
                                              Completion completion) {
  v1::Outcome same = completion.outcome;
  return RunConfirmed(store, std::move(evaluation), std::move(completion), std::move(same));
}

}  // namespace assay::testing
