#include "store/records.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/strings.h"

namespace assay {
namespace {

double FiniteOrZero(double value) { return std::isfinite(value) ? value : 0; }

absl::Status InvalidToken(std::string_view token) {
  constexpr size_t kShownMax = 64;
  return ErrorWithReason(
      absl::StatusCode::kInvalidArgument, "PAGE_TOKEN_INVALID",
      absl::StrCat("page token '", absl::CHexEscape(Av(token.substr(0, kShownMax))),
                   "' was not made by this list; pass next_page_token unchanged"));
}

// Catches tokens that were cut or edited; not a secret.
char Checksum(std::string_view text) {
  unsigned sum = 7;
  for (const char c : text) sum = sum * 31 + static_cast<unsigned char>(c);
  return "0123456789abcdef"[(sum ^ (sum >> 8)) & 15];
}

}  // namespace

google::protobuf::Timestamp ToTimestamp(absl::Time time) {
  const int64_t nanos = absl::ToUnixNanos(time);
  constexpr int64_t kSecond = 1'000'000'000;
  int64_t seconds = nanos / kSecond;
  int64_t rest = nanos % kSecond;
  if (rest < 0) {
    rest += kSecond;
    --seconds;
  }
  google::protobuf::Timestamp out;
  out.set_seconds(seconds);
  out.set_nanos(static_cast<int32_t>(rest));
  return out;
}

int64_t ToUnixNanos(const google::protobuf::Timestamp& timestamp) {
  return absl::ToUnixNanos(absl::FromUnixSeconds(timestamp.seconds()) +
                           absl::Nanoseconds(timestamp.nanos()));
}

std::string ProblemName(std::string_view problem) {
  if (problem.empty() || absl::StartsWith(Av(problem), "problems/")) return std::string(problem);
  return absl::StrCat("problems/", Av(problem));
}

OutcomeParts SplitOutcome(v1::Outcome outcome) {
  OutcomeParts parts;
  for (int w = 0; w < outcome.workload_results_size(); ++w) {
    v1::WorkloadResult* result = outcome.mutable_workload_results(w);
    if (!result->has_measurement()) continue;
    v1::Measurement* measurement = result->mutable_measurement();
    for (int r = 0; r < measurement->runners_size(); ++r) {
      parts.runners.push_back({w, r, std::move(*measurement->mutable_runners(r))});
    }
    measurement->clear_runners();
  }
  if (outcome.has_build()) {
    parts.build_log = std::move(*outcome.mutable_build()->mutable_log());
    outcome.mutable_build()->clear_log();
  }
  parts.output_log = std::move(*outcome.mutable_output_log());
  outcome.clear_output_log();
  parts.outcome = std::move(outcome);
  return parts;
}

void AddLogs(std::string_view build_log, std::string_view output_log, v1::Outcome* outcome) {
  if (!build_log.empty()) outcome->mutable_build()->set_log(std::string(build_log));
  if (!output_log.empty()) outcome->set_output_log(std::string(output_log));
}

void StripSamples(v1::Evaluation* evaluation) {
  if (!evaluation->has_outcome()) return;
  for (v1::WorkloadResult& result : *evaluation->mutable_outcome()->mutable_workload_results()) {
    if (result.has_measurement()) result.mutable_measurement()->clear_runners();
  }
}

v1::Evaluation WithoutSamples(v1::Evaluation evaluation) {
  StripSamples(&evaluation);
  return evaluation;
}

void StripLogs(v1::Evaluation* evaluation) {
  if (!evaluation->has_outcome()) return;
  if (evaluation->outcome().has_build()) {
    evaluation->mutable_outcome()->mutable_build()->clear_log();
  }
  evaluation->mutable_outcome()->clear_output_log();
}

std::vector<ResultRow> ResultRows(const v1::Outcome& outcome) {
  std::vector<ResultRow> rows;
  rows.reserve(static_cast<size_t>(outcome.workload_results_size()));
  for (const v1::WorkloadResult& result : outcome.workload_results()) {
    ResultRow row;
    row.workload = result.workload();
    const v1::Measurement& measurement = result.measurement();
    row.median_ns = FiniteOrZero(measurement.median_ns());
    row.q1_ns = FiniteOrZero(measurement.warm().q1_ns());
    row.q3_ns = FiniteOrZero(measurement.warm().q3_ns());
    row.efficiency_ratio = FiniteOrZero(result.efficiency_ratio());
    row.runner_spread_ratio = FiniteOrZero(measurement.runner_spread_ratio());
    if (result.ceiling().bound() != v1::Ceiling::BOUND_UNSPECIFIED) {
      row.bound = v1::Ceiling::Bound_Name(result.ceiling().bound());
    }
    double fastest_ns = std::numeric_limits<double>::infinity();
    for (const v1::BaselineResult& baseline : result.baselines()) {
      if (!(baseline.median_ns() > 0) || !(baseline.median_ns() < fastest_ns)) continue;
      fastest_ns = baseline.median_ns();
      row.baseline = baseline.name();
      row.speedup_ratio = FiniteOrZero(baseline.speedup_ratio());
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

bool IsSuspect(const v1::Outcome& outcome) {
  return std::any_of(
      outcome.findings().begin(), outcome.findings().end(),
      [](const v1::Finding& finding) { return finding.severity() >= v1::Finding::SUSPECT; });
}

std::string EncodePageToken(char kind, std::string_view key) {
  const std::string body = absl::StrCat(std::string(1, kind), absl::BytesToHexString(Av(key)));
  return body + Checksum(body);
}

absl::StatusOr<std::string> DecodePageToken(char kind, std::string_view token) {
  const bool framed = token.size() >= 4 && token.size() % 2 == 0 && token.front() == kind;
  if (!framed || Checksum(token.substr(0, token.size() - 1)) != token.back()) {
    return InvalidToken(token);
  }
  const std::string_view hex = token.substr(1, token.size() - 2);
  if (hex.find_first_not_of("0123456789abcdef") != std::string_view::npos) {
    return InvalidToken(token);
  }
  return absl::HexStringToBytes(Av(hex));
}

absl::StatusOr<int64_t> DecodeNumericPageToken(char kind, std::string_view token) {
  ASSAY_ASSIGN_OR_RETURN(const std::string key, DecodePageToken(kind, token));
  int64_t number = 0;
  if (!absl::SimpleAtoi(key, &number) || number <= 0) return InvalidToken(token);
  return number;
}

int ClampPageSize(int size) { return std::clamp(size, 1, limits::kPageSizeMax); }

absl::Status CheckCondition(const EvaluationCondition& condition) {
  using Field = EvaluationCondition::Field;
  using Operator = EvaluationCondition::Operator;
  const bool ordered = condition.op == Operator::kLess || condition.op == Operator::kGreater;
  if (ordered && condition.field != Field::kCreateTime) {
    return ErrorWithReason(absl::StatusCode::kInvalidArgument, "FILTER_UNSUPPORTED",
                           "'<' and '>' compare create_time only; use '=' or '!='");
  }
  return absl::OkStatus();
}

absl::Status TokenExists(std::string_view name) {
  return ErrorWithReason(
      absl::StatusCode::kAlreadyExists, "TOKEN_EXISTS",
      absl::StrCat(Av(name), " exists, or did before it was revoked; choose another name"));
}

absl::Status NotFound(std::string_view reason, std::string_view name) {
  constexpr size_t kShownMax = 128;
  return ErrorWithReason(
      absl::StatusCode::kNotFound, reason,
      absl::StrCat("'", absl::CHexEscape(Av(name.substr(0, kShownMax))), "' does not exist"));
}

v1::ProblemAuditSummary SummarizeAudit(const v1::ProblemAudit& audit) {
  v1::ProblemAuditSummary summary;
  summary.set_state(audit.passed() ? v1::ProblemAuditSummary::ADMITTED
                                   : v1::ProblemAuditSummary::REFUSED);
  for (const v1::AuditStep& step : audit.steps()) {
    if (!step.passed() && !step.skipped()) summary.add_failed_steps(step.name());
  }
  for (const v1::MutantFamily& family : audit.families()) {
    summary.set_mutant_count(summary.mutant_count() + family.mutant_count());
    summary.set_mutant_rejected_count(summary.mutant_rejected_count() + family.rejected_count());
  }
  if (audit.has_time()) *summary.mutable_time() = audit.time();
  return summary;
}

absl::Status CheckAuditDigest(const v1::ProblemAudit& audit, std::string_view stored_digest) {
  if (audit.problem_digest() == stored_digest) return absl::OkStatus();
  return ErrorWithReason(absl::StatusCode::kFailedPrecondition, "AUDIT_STALE",
                         absl::StrCat("the audit is of digest '", audit.problem_digest(), "', but ",
                                      audit.problem(), " version ", audit.problem_version(),
                                      " has '", Av(stored_digest), "'; audit the stored content"));
}

}  // namespace assay
