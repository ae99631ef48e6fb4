// Who may do what: tokens, their scopes, rates and quotas, and the log of what administrators did.
//
// Every call of every service begins and ends here (server/services/unary_call.h,
// watch_reactor.cc, dispatch_service.cc). All that decides is in memory: the store is read once, at
// the start, and written without waiting for it.
#ifndef ASSAY_SERVER_ACCESS_ACCESS_CONTROL_H_
#define ASSAY_SERVER_ACCESS_ACCESS_CONTROL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/limits.h"
#include "server/access/rate_limit.h"

namespace assay {

namespace v1 {
class Token;
}
class Clock;
class Store;
struct AccessRule;
struct NewAccessEvent;
struct StoredToken;

// What is known of a call when it arrives.
struct CallFacts {
  std::string_view method;       // "GetProblem"
  std::string authorization;     // as sent; empty: none
  std::string peer;              // as gRPC writes it: "ipv4:10.0.0.7:51234"
  bool has_certificate = false;  // of a client, verified in the handshake
};

// One call between its begin and its end. Used by one thread at a time.
struct CallAccess {
  absl::Status refusal;   // not OK: the call must do nothing and answer this
  std::string token;      // "tokens/{token}" of the caller; empty: none was needed
  bool is_admin = false;  // may do what needs ADMIN
  bool is_recorded = false;
  bool is_refused = false;  // for want of access
  std::string method;       // "/assay.v1.ProblemService/GetProblem"
  std::string peer;
  std::string resource;
};

// Ends a call. Not OK: what was done is not in the log, which the caller must be told.
using AccessAnswer = std::function<void(const absl::Status& recorded)>;

// Why calls are refused, as values of a metric's label.
inline constexpr std::array<const char*, 7> kAccessRefusals = {
    "TOKEN_MISSING", "TOKEN_INVALID", "TOKEN_EXPIRED", "TOKEN_REVOKED",
    "SCOPE_MISSING", "RATE_LIMITED",  "QUOTA_EXCEEDED"};

struct AccessCounters {
  std::array<int64_t, kAccessRefusals.size()> refusals = {};
  int64_t unrecorded_total =
      0;  // events that are not in the log: too many at once, or a failed write
};

// Thread-safe. No method blocks but Load.
class AccessControl {
 public:
  struct Options {
    Clock* clock = nullptr;
    Store* store = nullptr;
    // Without, every call is let in but those of workers where certificates are demanded.
    bool are_tokens_required = false;
    // Workers show a certificate, or a token with scope WORK.
    bool are_worker_certificates_required = false;
  };
  explicit AccessControl(const Options& options);
  ~AccessControl();

  // Reads tokens, and whose evaluations are unfinished. Blocks; call before serving.
  absl::Status Load();

  // Whether everybody may call it, unrecorded.
  bool IsOpen(std::string_view method) const;

  // Null: let in, and nothing needs to be known of the caller. Never null for methods of scope
  // ADMIN. Reasons of refusals: kAccessRefusals but the last. `resource` is what the call is about,
  // for the log; it may be hostile.
  std::shared_ptr<CallAccess> Begin(const CallFacts& facts, std::string_view resource);

  // For what only administrators may do beyond the rule of the method: PERMISSION_DENIED with
  // reason SCOPE_MISSING. Recorded either way. `what` is a clause for the message.
  absl::Status DemandAdmin(std::string_view what, CallAccess* call);

  // OK while the token of the call is neither revoked nor expired. For calls that take long.
  absl::Status Recheck(const CallAccess& call);

  // What End writes of a call, for those who write it together with what the call does. A call that
  // was recorded so is no longer `is_recorded`.
  NewAccessEvent MakeRecord(const CallAccess& call, absl::StatusCode code) const;

  // Records the call if it has to be, and calls `answer` exactly once: for what was done after the
  // record is durable, on any thread, and with reason ACCESS_UNRECORDED when it could not be
  // written; for the rest at once and with OK.
  void End(const CallAccess& call, absl::StatusCode code, AccessAnswer answer);

  // Takes one of the token's open streams, until RemoveStream: RESOURCE_EXHAUSTED with reason
  // TOO_MANY_WATCHERS. Callers without a token share what the server has.
  absl::Status AddStream(const CallAccess& call);
  void RemoveStream(const CallAccess& call);
  // Whether a token with open streams has expired since the last call: they are to look at it
  // (WatchHub::CheckAccess).
  bool TakeExpiredStreams();

  // Counts bytes of new candidates to a token: RESOURCE_EXHAUSTED with reason QUOTA_EXCEEDED when
  // it stores more than it may. A token that is empty or unknown has no quota.
  absl::Status AddCandidateBytes(const std::string& token, size_t bytes);

  // Counts new unfinished evaluations ("evaluations/{id}") to a token: all, or RESOURCE_EXHAUSTED
  // with reason QUOTA_EXCEEDED. A token that is empty or unknown has no quota.
  absl::Status AddUnfinished(const std::string& token, const std::vector<std::string>& evaluations);
  // Unknown ones are ignored.
  void RemoveUnfinished(const std::string& token, const std::string& evaluation);

  // After the token became durable.
  void PutToken(const StoredToken& stored);
  // After a change of a known one became durable.
  void UpdateToken(const v1::Token& token);
  // In order of name, after `after`, at most `count_max`.
  std::vector<v1::Token> Tokens(std::string_view after, size_t count_max) const;
  size_t token_count() const;

  AccessCounters Counters() const;

 private:
  struct Entry;
  struct Address {
    std::string host;
    RateLimit refusals;
  };
  using Addresses = std::list<Address>;  // last seen first

  absl::Status Admit(const AccessRule& rule, const CallFacts& facts, CallAccess* call)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Sets *entry, or says why there is none that holds.
  absl::Status FindCaller(const AccessRule& rule, const CallFacts& facts, Entry** entry)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckStanding(const Entry& entry) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `refusal`, unless the address was refused too often.
  absl::Status LimitRefusals(const std::string& peer, absl::Status refusal)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountUnrecorded(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Count(absl::Status refusal) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Entry* FindToken(std::string_view name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  mutable absl::Mutex mutex_;
  std::map<std::string, std::unique_ptr<Entry>, std::less<>> tokens_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Entry*> by_digest_ ABSL_GUARDED_BY(mutex_);
  // When tokens with open streams expire.
  std::set<std::pair<absl::Time, const Entry*>> stream_ends_ ABSL_GUARDED_BY(mutex_);
  Addresses addresses_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Addresses::iterator> by_host_ ABSL_GUARDED_BY(mutex_);
  AccessCounters counters_ ABSL_GUARDED_BY(mutex_);
  size_t refusals_waiting_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace assay

#endif  // ASSAY_SERVER_ACCESS_ACCESS_CONTROL_H_
