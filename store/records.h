// What every implementation of Store shares about the shape of its records: how an evaluation is
// taken apart for storage, which leaderboard rows an outcome gives, and page tokens. Pure
// functions; thread-safe.
#ifndef ASSAY_STORE_RECORDS_H_
#define ASSAY_STORE_RECORDS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "assay/v1/evaluation.pb.h"
#include "google/protobuf/timestamp.pb.h"
#include "store/store.h"

namespace assay {

google::protobuf::Timestamp ToTimestamp(absl::Time time);
// Times outside 1678 to 2262 saturate.
int64_t ToUnixNanos(const google::protobuf::Timestamp& timestamp);

// "gelu" and "problems/gelu" give "problems/gelu"; "" stays.
std::string ProblemName(std::string_view problem);

// An outcome without what lists never show, and the rest.
struct OutcomeParts {
  struct Runner {
    int workload_index = 0;
    int runner_index = 0;
    v1::RunnerSamples samples;
  };
  v1::Outcome outcome;
  std::vector<Runner> runners;
  std::string build_log;
  std::string output_log;
};
OutcomeParts SplitOutcome(v1::Outcome outcome);
void AddLogs(std::string_view build_log, std::string_view output_log, v1::Outcome* outcome);
void StripSamples(v1::Evaluation* evaluation);
v1::Evaluation WithoutSamples(v1::Evaluation evaluation);
void StripLogs(v1::Evaluation* evaluation);

// What a problem's resource shows of its audit.
v1::ProblemAuditSummary SummarizeAudit(const v1::ProblemAudit& audit);
// FAILED_PRECONDITION with reason AUDIT_STALE unless the audit is of this very content.
absl::Status CheckAuditDigest(const v1::ProblemAudit& audit, std::string_view stored_digest);

// One workload of an outcome as leaderboards see it. Numbers that were not measured, or are not
// finite, are 0.
struct ResultRow {
  std::string workload;
  double median_ns = 0;
  double q1_ns = 0;
  double q3_ns = 0;
  double efficiency_ratio = 0;
  std::string bound;  // MEMORY, COMPUTE, LAUNCH or empty
  double runner_spread_ratio = 0;
  std::string baseline;  // the fastest; empty: none
  double speedup_ratio = 0;
};
std::vector<ResultRow> ResultRows(const v1::Outcome& outcome);

// True when some finding keeps the whole evaluation off leaderboards.
bool IsSuspect(const v1::Outcome& outcome);

// Page tokens: a list's kind and the key of the last item shown. INVALID_ARGUMENT with reason
// PAGE_TOKEN_INVALID for what EncodePageToken did not make for this kind.
std::string EncodePageToken(char kind, std::string_view key);
absl::StatusOr<std::string> DecodePageToken(char kind, std::string_view token);
// For keys that are positive integers.
absl::StatusOr<int64_t> DecodeNumericPageToken(char kind, std::string_view token);
inline constexpr char kEvaluationPages = 'e';
inline constexpr char kCandidatePages = 'c';
inline constexpr char kProblemPages = 'p';
inline constexpr char kAccessEventPages = 'a';

// `size` within [1, limits::kPageSizeMax].
int ClampPageSize(int size);

// INVALID_ARGUMENT with reason FILTER_UNSUPPORTED when its operator does not suit its field.
absl::Status CheckCondition(const EvaluationCondition& condition);

// ALREADY_EXISTS with reason TOKEN_EXISTS.
absl::Status TokenExists(std::string_view name);

// NOT_FOUND with reason `reason`.
absl::Status NotFound(std::string_view reason, std::string_view name);

}  // namespace assay

#endif  // ASSAY_STORE_RECORDS_H_
