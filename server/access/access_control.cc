#include "server/access/access_control.h"

#include <arpa/inet.h>

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "base/strings.h"
#include "server/access/rules.h"
#include "server/access/secret.h"
#include "store/records.h"
#include "store/store.h"

namespace assay {
namespace {

constexpr char kHowToSend[] =
    "send it as metadata 'authorization: Bearer SECRET' (the command line: ASSAY_TOKEN or "
    "--token-file FILE; assay-worker: --token-file FILE)";

absl::Status Unauthenticated(std::string_view reason, std::string_view message) {
  return ErrorWithReason(absl::StatusCode::kUnauthenticated, reason, message);
}

bool Covers(const v1::Token& token, AccessScope needed) {
  for (const int scope : token.scopes()) {
    switch (scope) {
      case v1::Token::READ:
        if (needed == AccessScope::kRead) return true;
        break;
      case v1::Token::SUBMIT:
        if (needed == AccessScope::kRead || needed == AccessScope::kSubmit) return true;
        break;
      case v1::Token::ADMIN:
        // Being a worker decides verdicts; no scope brings that along.
        if (needed != AccessScope::kWork) return true;
        break;
      case v1::Token::WORK:
        if (needed == AccessScope::kWork) return true;
        break;
      default:
        break;
    }
  }
  return false;
}

// "ipv4:10.0.0.7:51234" without the port, which changes from call to call. Of an IPv6 address the
// network of 64 bits, which one caller has whole; gRPC writes its brackets escaped.
std::string HostOf(const std::string& peer) {
  constexpr absl::string_view kIpv6 = "ipv6:";
  if (!absl::StartsWith(peer, kIpv6)) return peer.substr(0, peer.rfind(':'));
  std::string host = absl::StrReplaceAll(peer.substr(kIpv6.size()), {{"%5B", "["}, {"%5D", "]"}});
  host = host.substr(host.find('[') + 1);
  host = host.substr(0, host.find_first_of("]%"));
  in6_addr address;
  if (inet_pton(AF_INET6, host.c_str(), &address) != 1) return host;
  return absl::StrCat(kIpv6, absl::BytesToHexString(absl::string_view(
                                 reinterpret_cast<const char*>(address.s6_addr), 8)));
}

// Printable, and of bounded length.
std::string EventText(std::string_view text) {
  std::string out = absl::CHexEscape(Av(text.substr(0, limits::kAccessTextBytesMax)));
  if (out.size() > limits::kAccessTextBytesMax) out.resize(limits::kAccessTextBytesMax);
  return out;
}

// Upwards, so that a caller who waits so long is let in.
std::string Wait(absl::Duration wait) {
  return absl::FormatDuration(absl::Ceil(wait, absl::Milliseconds(10)));
}

absl::Time ExpiryOf(const v1::Token& token) {
  return absl::FromUnixNanos(ToUnixNanos(token.expire_time()));
}

int OrDefault(int value, int fallback) { return value > 0 ? value : fallback; }

}  // namespace

struct AccessControl::Entry {
  explicit Entry(const v1::Token& stored)
      : token(stored),
        rate(OrDefault(stored.requests_per_second(), limits::kTokenRequestsPerSecond),
             OrDefault(stored.requests_burst(), limits::kTokenRequestsBurst)),
        candidate_bytes(limits::kTokenCandidateBytesPerSecond, limits::kTokenCandidateBytesBurst) {}

  v1::Token token;
  RateLimit rate;
  RateLimit candidate_bytes;
  size_t streams = 0;
  absl::flat_hash_set<size_t> unfinished;  // hashes of the evaluations' names
};

AccessControl::AccessControl(const Options& options) : options_(options) {}
AccessControl::~AccessControl() = default;

absl::Status AccessControl::Load() {
  ASSAY_ASSIGN_OR_RETURN(const std::vector<StoredToken> tokens, options_.store->ListTokens());
  for (const StoredToken& token : tokens) PutToken(token);
  if (tokens.empty()) return absl::OkStatus();
  ASSAY_ASSIGN_OR_RETURN(const auto unfinished, options_.store->ListUnfinished());
  absl::MutexLock lock(&mutex_);
  for (const UnfinishedEvaluation& item : unfinished) {
    // The server asked for a second run, not the token that it carries on.
    if (!item.evaluation.confirms().empty()) continue;
    Entry* const entry = FindToken(item.evaluation.creator());
    if (entry == nullptr) continue;
    entry->unfinished.insert(std::hash<std::string>()(item.evaluation.name()));
  }
  return absl::OkStatus();
}

AccessControl::Entry* AccessControl::FindToken(std::string_view name) const {
  const auto found = tokens_.find(name);
  return found == tokens_.end() ? nullptr : found->second.get();
}

bool AccessControl::IsOpen(std::string_view method) const {
  const AccessRule* const rule = FindAccessRule(method);
  return rule != nullptr && rule->scope != AccessScope::kAdmin && !options_.are_tokens_required &&
         !(rule->scope == AccessScope::kWork && options_.are_worker_certificates_required);
}

std::shared_ptr<CallAccess> AccessControl::Begin(const CallFacts& facts,
                                                 std::string_view resource) {
  if (IsOpen(facts.method)) return nullptr;
  auto call = std::make_shared<CallAccess>();
  const AccessRule* const rule = FindAccessRule(facts.method);
  if (rule == nullptr) {
    call->refusal =
        absl::InternalError(absl::StrCat("nobody may call ", Av(facts.method), ": it has no rule"));
    return call;
  }
  const bool is_worker = rule->scope == AccessScope::kWork;
  if (is_worker && options_.are_worker_certificates_required && facts.has_certificate) {
    return nullptr;
  }
  call->method = absl::StrCat("/", rule->service, "/", rule->method);
  call->peer = EventText(facts.peer);
  call->resource = EventText(resource);
  call->is_recorded = rule->scope == AccessScope::kAdmin;
  if (!options_.are_tokens_required && !is_worker) {
    call->is_admin = true;
    return call;
  }
  call->refusal = Admit(*rule, facts, call.get());
  if (call->refusal.ok()) return call;
  call->is_refused = true;
  const std::string reason = GetReason(call->refusal);
  if (reason == "SCOPE_MISSING") call->is_recorded = true;
  // Or the log would hold little else.
  if (reason == "RATE_LIMITED") call->is_recorded = false;
  return call;
}

absl::Status AccessControl::Admit(const AccessRule& rule, const CallFacts& facts,
                                  CallAccess* call) {
  absl::MutexLock lock(&mutex_);
  Entry* entry = nullptr;
  const absl::Status found = FindCaller(rule, facts, &entry);
  if (!found.ok()) return Count(LimitRefusals(facts.peer, found));
  call->token = entry->token.name();
  call->is_admin = Covers(entry->token, AccessScope::kAdmin);
  // Workers keep leases alive; a refusal would end an evaluation for nothing.
  if (rule.scope != AccessScope::kWork) {
    const absl::Duration wait = entry->rate.Take(options_.clock->Monotonic());
    if (wait > absl::ZeroDuration()) {
      return Count(
          ErrorWithReason(absl::StatusCode::kResourceExhausted, "RATE_LIMITED",
                          absl::StrCat(entry->token.name(), " calls more often than it may; wait ",
                                       Wait(wait), ", send batches, or watch instead of polling")));
    }
  }
  if (Covers(entry->token, rule.scope)) return absl::OkStatus();
  return Count(
      ErrorWithReason(absl::StatusCode::kPermissionDenied, "SCOPE_MISSING",
                      absl::StrCat(rule.method, " needs the scope ", AccessScopeName(rule.scope),
                                   ", which ", entry->token.name(),
                                   " does not have; use a token that has it, or ask an "
                                   "administrator for one")));
}

absl::Status AccessControl::FindCaller(const AccessRule& rule, const CallFacts& facts,
                                       Entry** entry) {
  if (facts.authorization.empty()) {
    const bool certificate =
        rule.scope == AccessScope::kWork && options_.are_worker_certificates_required;
    return Unauthenticated(
        "TOKEN_MISSING",
        absl::StrCat(rule.method, " needs ",
                     certificate ? "a client certificate (assay-worker: --tls-cert and --tls-key), "
                                   "or "
                                 : "",
                     "a token with the scope ", AccessScopeName(rule.scope), "; ", kHowToSend));
  }
  const std::string_view secret = BearerSecret(facts.authorization);
  const auto found = secret.empty() ? by_digest_.end() : by_digest_.find(SecretDigest(secret));
  if (found == by_digest_.end()) {
    return Unauthenticated(
        "TOKEN_INVALID",
        absl::StrCat("the token is none of this server; check it, and ", kHowToSend));
  }
  ASSAY_RETURN_IF_ERROR(CheckStanding(*found->second));
  *entry = found->second;
  return absl::OkStatus();
}

absl::Status AccessControl::CheckStanding(const Entry& entry) const {
  const v1::Token& token = entry.token;
  if (token.has_revoke_time()) {
    return Unauthenticated(
        "TOKEN_REVOKED",
        absl::StrCat(token.name(), " was revoked; ask an administrator for another"));
  }
  const absl::Time expires = ExpiryOf(token);
  if (token.has_expire_time() && options_.clock->Now() >= expires) {
    return Unauthenticated(
        "TOKEN_EXPIRED",
        absl::StrCat(token.name(), " expired ", absl::FormatTime(expires, absl::UTCTimeZone()),
                     "; ask an administrator for another"));
  }
  return absl::OkStatus();
}

absl::Status AccessControl::LimitRefusals(const std::string& peer, absl::Status refusal) {
  const std::string host = HostOf(peer);
  auto found = by_host_.find(host);
  if (found == by_host_.end()) {
    if (addresses_.size() >= limits::kAccessAddressesMax) {
      by_host_.erase(addresses_.back().host);
      addresses_.pop_back();
    }
    addresses_.push_front(
        {host, RateLimit(limits::kRefusedCallsPerSecond, limits::kRefusedCallsBurst)});
    found = by_host_.emplace(host, addresses_.begin()).first;
  } else {
    addresses_.splice(addresses_.begin(), addresses_, found->second);
  }
  const absl::Duration wait = found->second->refusals.Take(options_.clock->Monotonic());
  if (wait == absl::ZeroDuration()) return refusal;
  return ErrorWithReason(
      absl::StatusCode::kResourceExhausted, "RATE_LIMITED",
      absl::StrCat("too many calls without a valid token from this address; wait ", Wait(wait),
                   " and send a valid one"));
}

absl::Status AccessControl::Count(absl::Status refusal) {
  const std::string reason = GetReason(refusal);
  const auto found = std::find(kAccessRefusals.begin(), kAccessRefusals.end(), reason);
  if (found != kAccessRefusals.end()) ++counters_.refusals[found - kAccessRefusals.begin()];
  return refusal;
}

absl::Status AccessControl::DemandAdmin(std::string_view what, CallAccess* call) {
  call->is_recorded = true;
  if (call->is_admin) return absl::OkStatus();
  call->is_refused = true;
  absl::MutexLock lock(&mutex_);
  return Count(ErrorWithReason(
      absl::StatusCode::kPermissionDenied, "SCOPE_MISSING",
      absl::StrCat(Av(what), " needs the scope ADMIN, which ", call->token,
                   " does not have; use the token that created it, or ask an administrator")));
}

absl::Status AccessControl::Recheck(const CallAccess& call) {
  if (call.token.empty()) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  const Entry* const entry = FindToken(call.token);
  if (entry == nullptr) return absl::InternalError(call.token + " is gone");
  const absl::Status standing = CheckStanding(*entry);
  return standing.ok() ? standing : Count(standing);
}

NewAccessEvent AccessControl::MakeRecord(const CallAccess& call, absl::StatusCode code) const {
  NewAccessEvent record;
  record.refused = call.is_refused;
  v1::AccessEvent& event = record.event;
  *event.mutable_time() = ToTimestamp(options_.clock->Now());
  event.set_token(call.token);
  event.set_peer(call.peer);
  event.set_method(call.method);
  event.set_resource(call.resource);
  event.set_code(absl::StatusCodeToString(code));
  return record;
}

void AccessControl::End(const CallAccess& call, absl::StatusCode code, AccessAnswer answer) {
  if (!call.is_recorded) return answer(absl::OkStatus());
  NewAccessEvent record = MakeRecord(call, code);
  if (!call.is_refused) {
    options_.store->RecordAccessEvent(
        std::move(record), [this, method = call.method,
                            answer = std::move(answer)](absl::StatusOr<v1::AccessEvent> recorded) {
          if (recorded.ok()) return answer(absl::OkStatus());
          CountUnrecorded(recorded.status());
          answer(ErrorWithReason(
              absl::StatusCode::kInternal, "ACCESS_UNRECORDED",
              absl::StrCat(method, " could not be written to the log of access (",
                           recorded.status().message(),
                           "); it may have been done: look before doing it again")));
        });
    return;
  }
  {
    absl::MutexLock lock(&mutex_);
    if (refusals_waiting_ < limits::kAccessRecordsWaiting) {
      ++refusals_waiting_;
    } else {
      record.refused = false;
    }
  }
  if (record.refused) {
    options_.store->RecordAccessEvent(std::move(record),
                                      [this](absl::StatusOr<v1::AccessEvent> recorded) {
                                        if (!recorded.ok()) CountUnrecorded(recorded.status());
                                        absl::MutexLock lock(&mutex_);
                                        --refusals_waiting_;
                                      });
  } else {
    CountUnrecorded(absl::ResourceExhaustedError("too many at once"));
  }
  answer(absl::OkStatus());
}

void AccessControl::CountUnrecorded(const absl::Status& why) {
  {
    absl::MutexLock lock(&mutex_);
    ++counters_.unrecorded_total;
  }
  Log(LogLevel::kError, "access-event-lost", {{"error", std::string(why.message())}});
}

absl::Status AccessControl::AddStream(const CallAccess& call) {
  absl::MutexLock lock(&mutex_);
  Entry* const entry = FindToken(call.token);
  if (entry == nullptr) return absl::OkStatus();
  if (entry->streams >= limits::kTokenWatchersMax) {
    return ErrorWithReason(absl::StatusCode::kResourceExhausted, "TOO_MANY_WATCHERS",
                           absl::StrCat(call.token, " has ", entry->streams,
                                        " open streams, which is the most; end some, or ask for "
                                        "lists of evaluations instead"));
  }
  ++entry->streams;
  if (entry->token.has_expire_time()) stream_ends_.emplace(ExpiryOf(entry->token), entry);
  return absl::OkStatus();
}

void AccessControl::RemoveStream(const CallAccess& call) {
  absl::MutexLock lock(&mutex_);
  Entry* const entry = FindToken(call.token);
  if (entry == nullptr || entry->streams == 0 || --entry->streams > 0) return;
  stream_ends_.erase({ExpiryOf(entry->token), entry});
}

bool AccessControl::TakeExpiredStreams() {
  absl::MutexLock lock(&mutex_);
  bool found = false;
  while (!stream_ends_.empty() && stream_ends_.begin()->first <= options_.clock->Now()) {
    stream_ends_.erase(stream_ends_.begin());
    found = true;
  }
  return found;
}

absl::Status AccessControl::AddCandidateBytes(const std::string& token, size_t bytes) {
  if (token.empty()) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  Entry* const entry = FindToken(token);
  if (entry == nullptr) return absl::OkStatus();
  const absl::Duration wait =
      entry->candidate_bytes.Take(options_.clock->Monotonic(), static_cast<double>(bytes));
  if (wait == absl::ZeroDuration()) return absl::OkStatus();
  return Count(ErrorWithReason(
      absl::StatusCode::kResourceExhausted, "QUOTA_EXCEEDED",
      absl::StrCat(token, " stores new candidates faster than it may (",
                   limits::kTokenCandidateBytesPerSecond, " bytes a second in the long run); wait ",
                   Wait(wait), ", or name candidates that are stored")));
}

absl::Status AccessControl::AddUnfinished(const std::string& token,
                                          const std::vector<std::string>& evaluations) {
  if (token.empty()) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  Entry* const entry = FindToken(token);
  if (entry == nullptr) return absl::OkStatus();
  const size_t count_max = static_cast<size_t>(
      OrDefault(entry->token.unfinished_evaluations_max(), limits::kTokenUnfinishedEvaluations));
  if (entry->unfinished.size() + evaluations.size() > count_max) {
    return Count(ErrorWithReason(
        absl::StatusCode::kResourceExhausted, "QUOTA_EXCEEDED",
        absl::StrCat(token, " has ", entry->unfinished.size(), " unfinished evaluations and may ",
                     "have ", count_max, ", so not ", evaluations.size(),
                     " more; wait until some finish, or cancel some")));
  }
  for (const std::string& name : evaluations) {
    entry->unfinished.insert(std::hash<std::string>()(name));
  }
  return absl::OkStatus();
}

void AccessControl::RemoveUnfinished(const std::string& token, const std::string& evaluation) {
  if (token.empty()) return;
  absl::MutexLock lock(&mutex_);
  Entry* const entry = FindToken(token);
  if (entry != nullptr) entry->unfinished.erase(std::hash<std::string>()(evaluation));
}

void AccessControl::PutToken(const StoredToken& stored) {
  absl::MutexLock lock(&mutex_);
  auto entry = std::make_unique<Entry>(stored.token);
  by_digest_[stored.digest] = entry.get();
  tokens_[stored.token.name()] = std::move(entry);
}

void AccessControl::UpdateToken(const v1::Token& token) {
  absl::MutexLock lock(&mutex_);
  Entry* const entry = FindToken(token.name());
  if (entry != nullptr) entry->token = token;
}

std::vector<v1::Token> AccessControl::Tokens(std::string_view after, size_t count_max) const {
  absl::MutexLock lock(&mutex_);
  std::vector<v1::Token> tokens;
  for (auto it = tokens_.upper_bound(after); it != tokens_.end() && tokens.size() < count_max;
       ++it) {
    tokens.push_back(it->second->token);
  }
  return tokens;
}

size_t AccessControl::token_count() const {
  absl::MutexLock lock(&mutex_);
  return tokens_.size();
}

AccessCounters AccessControl::Counters() const {
  absl::MutexLock lock(&mutex_);
  return counters_;
}

}  // namespace assay
