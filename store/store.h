// The store: everything that must survive. Only the server opens it.
//
// Writes are asynchronous: they queue, a single writer thread applies a group of them in one
// transaction, and each `done` is called after the group is durable, from the writer's thread (so
// it must not block, nor call Shutdown; a write that is refused at once is answered from there too,
// so a caller may hold locks). Within a group every write succeeds or fails on its own. Writes are
// applied in the order of the calls. Reads block the caller and see every write whose `done` was
// called. All methods are thread-safe.
//
// Evaluations that come back, from writes and reads alike, have logs and no samples unless a method
// says otherwise.
//
// Errors: NOT_FOUND with reason PROBLEM_NOT_FOUND, CANDIDATE_NOT_FOUND, EVALUATION_NOT_FOUND
// or TOKEN_NOT_FOUND;
// ALREADY_EXISTS, ABORTED (a compare-and-set lost) with the reasons named below; RESOURCE_EXHAUSTED
// with reason STORAGE_FULL when the disk is full, or STORE_OVERLOADED when more creations wait than
// limits::kStoreQueue... allow; UNAVAILABLE with reason STORE_SHUT_DOWN after Shutdown;
// INVALID_ARGUMENT with reason PAGE_TOKEN_INVALID for a page key that another list made.
#ifndef ASSAY_STORE_STORE_H_
#define ASSAY_STORE_STORE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "assay/v1/access.pb.h"
#include "assay/v1/candidate.pb.h"
#include "assay/v1/evaluation.pb.h"
#include "assay/v1/fleet.pb.h"
#include "assay/v1/leaderboard.pb.h"
#include "assay/v1/problem.pb.h"

namespace assay {

template <typename T>
using StoreDone = std::function<void(absl::StatusOr<T>)>;

struct NewEvaluation {
  // With name, state QUEUED (or SUCCEEDED with outcome when a stored answer is given) and
  // create_time set. Names should sort by time of creation ("evaluations/" and the milliseconds
  // since 1970 as 12 hexadecimal digits followed by 20 random ones), so that an index on them grows
  // at its end. The store sets revision, update_time and the times of the timeline.
  v1::Evaluation evaluation;
  // Stored too unless a candidate of that name exists already. Name and digest are set.
  std::optional<v1::Candidate> candidate;
  std::optional<v1::Candidate> baseline_candidate;
  // Of the code of each (CandidateFingerprint); empty: it is nobody's clone.
  std::string candidate_fingerprint;
  std::string baseline_fingerprint;
  // Empty: none. `request_digest` covers the content of the request.
  std::string request_id;
  std::string request_digest;
};

struct CreatedEvaluation {
  v1::Evaluation evaluation;
  bool existed = false;  // the request_id was known with the same digest
};

struct LeaseGrant {
  std::string evaluation;
  std::string worker;  // "workers/{worker}"
  int64_t fence = 0;   // greater than any before it
  int attempt = 0;     // counted from 1
  // Of the problem that the worker is given; results rank under it. 0: the newest.
  int problem_version = 0;
  absl::Time time;
};

struct Completion {
  std::string evaluation;
  int64_t fence = 0;
  v1::Outcome outcome;  // with raw samples
  v1::Timeline timeline;
  // What makes two evaluations identical; see server/services/identity. Empty: never answers
  // another.
  std::string identity;
  std::string device_class;  // the exact class that it ran on
  absl::Time time;
  // A second run may be made when this would rank first.
  bool may_confirm = false;
};

struct CompletionRecord {
  bool already_recorded = false;  // the same fence had completed before; nothing was written
  v1::Evaluation evaluation;
  // The second run that was made together with this record, as it is stored now.
  std::optional<v1::Evaluation> confirmation;
};

// What an evaluation was run on. Empty and 0 where nothing was run.
struct RanOn {
  std::string device_class;  // the exact one, of a completed attempt
  int problem_version = 0;   // of the last lease, or the newest at creation
};

// Empty strings: all.
struct LeaderboardQuery {
  std::string problem = "";
  std::string workload = "";
  std::string device_class = "";
  std::string contract = "";
  int entries_max = 50;  // per workload, device class and contract
};

// The end of an attempt without an outcome.
struct AttemptEnd {
  std::string evaluation;
  int64_t fence = 0;
  v1::ErrorDetail error;  // code empty: given back, no attempt counted
  bool final = false;     // FAILED instead of QUEUED
  absl::Time time;
};

struct Page {
  int size = 50;
  // Continue after this key; empty: from the start. Opaque to callers, made by the store.
  std::string after;
};

template <typename T>
struct Listed {
  std::vector<T> items;
  std::string next;  // empty: no more
};

// One comparison of a list filter; they are joined by AND.
struct EvaluationCondition {
  enum class Field {
    kProblem,
    kCandidate,
    kState,
    kVerdict,
    kLevel,
    kDeviceClass,
    kLabel,
    kCreateTime
  };
  enum class Operator { kEqual, kNotEqual, kLess, kGreater };
  Field field = Field::kProblem;
  Operator op = Operator::kEqual;
  std::string text;    // for names, class and label
  int64_t number = 0;  // for enums; create_time in Unix nanoseconds
};

// An evaluation that was not final when the store was opened.
struct UnfinishedEvaluation {
  v1::Evaluation evaluation;  // state QUEUED or RUNNING
  int64_t fence = 0;
};

struct StoredToken {
  v1::Token token;     // with name and create_time
  std::string digest;  // of its secret
};

struct NewAccessEvent {
  v1::AccessEvent event;  // without number
  // For want of access. Of these and of the others the newest limits::kAccessEventsMax each are
  // kept.
  bool refused = false;
};

class Store {
 public:
  virtual ~Store() = default;

  // --- Writes.

  // A known name with the same digest: the stored problem. With another digest the version must be
  // higher than every stored one, otherwise ALREADY_EXISTS with reason PROBLEM_VERSION_EXISTS. Old
  // versions stay.
  virtual void CreateProblem(v1::Problem problem, StoreDone<v1::Problem> done) = 0;
  // Keeps `audit`, made at `time`, in place of an earlier one of that version, and gives back the
  // problem with its summary. FAILED_PRECONDITION with reason AUDIT_STALE when the version has
  // another digest.
  virtual void RecordProblemAudit(v1::ProblemAudit audit, absl::Time time,
                                  StoreDone<v1::Problem> done) = 0;
  // Same digest: the stored candidate. A new one that has the (not empty) `fingerprint` of an
  // earlier candidate of the problem is its clone, and comes back with `clone_of`.
  virtual void CreateCandidate(v1::Candidate candidate, std::string fingerprint,
                               StoreDone<v1::Candidate> done) = 0;
  // All or nothing. ALREADY_EXISTS with reason REQUEST_ID_REUSED for a known request_id with
  // another digest, EVALUATION_EXISTS for a known name. Problem and candidates must exist, or come
  // along.
  virtual void CreateEvaluations(std::vector<NewEvaluation> evaluations,
                                 StoreDone<std::vector<CreatedEvaluation>> done) = 0;
  // QUEUED -> RUNNING. ABORTED with reason NOT_QUEUED otherwise, or when `fence` is not greater
  // than the stored one.
  virtual void RecordLease(LeaseGrant grant, StoreDone<v1::Evaluation> done) = 0;
  // RUNNING with this very fence -> SUCCEEDED, with outcome, samples, leaderboard rows and, when
  // it would rank first, its second run (store/confirmation.h) in one transaction; a second run
  // settles the rows of the first. ABORTED with reason LEASE_FENCED otherwise.
  virtual void RecordCompletion(Completion completion, StoreDone<CompletionRecord> done) = 0;
  // RUNNING with this very fence -> QUEUED or FAILED. ABORTED with reason LEASE_FENCED otherwise.
  virtual void RecordAttemptEnd(AttemptEnd end, StoreDone<v1::Evaluation> done) = 0;
  // QUEUED or RUNNING -> CANCELLED; the fence is raised. FAILED_PRECONDITION with reason
  // EVALUATION_FINISHED otherwise.
  virtual void RecordCancel(std::string evaluation, absl::Time time,
                            StoreDone<v1::Evaluation> done) = 0;
  // Inserts or replaces; calibrations of its devices are kept for ever under their names.
  virtual void RecordWorker(v1::Worker worker, StoreDone<bool> done) = 0;
  // With the event that tells of it, both or neither. ALREADY_EXISTS with reason TOKEN_EXISTS for a
  // known name, without an event.
  virtual void CreateToken(StoredToken token, NewAccessEvent event, StoreDone<v1::Token> done) = 0;
  // Sets revoke_time, unless it is set. NOT_FOUND with reason TOKEN_NOT_FOUND.
  virtual void RevokeToken(std::string name, absl::Time time, StoreDone<v1::Token> done) = 0;
  // Gives it the next number.
  virtual void RecordAccessEvent(NewAccessEvent event, StoreDone<v1::AccessEvent> done) = 0;

  // --- Reads.

  // The newest version when `version` is 0.
  virtual absl::StatusOr<v1::Problem> GetProblem(std::string_view name, int version) = 0;
  // Newest versions, by name, without files.
  virtual absl::StatusOr<Listed<v1::Problem>> ListProblems(const Page& page) = 0;
  virtual absl::StatusOr<v1::Candidate> GetCandidate(std::string_view name) = 0;
  // Newest first, without files. `problem` empty: all.
  virtual absl::StatusOr<Listed<v1::Candidate>> ListCandidates(std::string_view problem,
                                                               const Page& page) = 0;
  virtual absl::StatusOr<v1::Evaluation> GetEvaluation(std::string_view name,
                                                       bool include_samples) = 0;
  // Newest first, without samples and logs.
  virtual absl::StatusOr<Listed<v1::Evaluation>> ListEvaluations(
      const std::vector<EvaluationCondition>& conditions, const Page& page) = 0;
  // The newest SUCCEEDED evaluation of this identity; NOT_FOUND.
  virtual absl::StatusOr<v1::Evaluation> FindByIdentity(std::string_view identity) = 0;
  // In order of creation.
  virtual absl::StatusOr<std::vector<UnfinishedEvaluation>> ListUnfinished() = 0;
  virtual absl::StatusOr<RanOn> GetRanOn(std::string_view evaluation) = 0;
  // PASSED results of level RANKED on the newest problem version where an audit ADMITTED it,
  // without SUSPECT findings that no second run contradicts, by workload, device class and
  // contract; of candidates that are clones of each other the best. Ranks count from 1, and what
  // has rank 1 is confirmed. A result that is not and is as fast as the first, or stands where
  // nothing is confirmed, is PENDING: it has rank 0 and comes after rank 1, unless its own code
  // holds that.
  virtual absl::StatusOr<std::vector<v1::LeaderboardEntry>> Leaderboard(
      const LeaderboardQuery& query) = 0;
  virtual absl::StatusOr<std::vector<v1::Worker>> ListWorkers() = 0;
  // By name.
  virtual absl::StatusOr<std::vector<StoredToken>> ListTokens() = 0;
  // Newest first.
  virtual absl::StatusOr<Listed<v1::AccessEvent>> ListAccessEvents(const Page& page) = 0;

  // Writes a consistent copy for readers such as Grafana: journal mode DELETE, renamed into place,
  // without tokens and access events.
  // Blocks.
  virtual absl::Status PublishCopy(const std::string& path) = 0;

  // Lets queued writes finish, then refuses further ones. Idempotent.
  virtual void Shutdown() = 0;
};

}  // namespace assay

#endif  // ASSAY_STORE_STORE_H_
