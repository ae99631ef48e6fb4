#include "server/access/access_service.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "assay/v1/access.grpc.pb.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/strings.h"
#include "server/access/access_control.h"
#include "server/access/secret.h"
#include "server/services/page_token.h"
#include "server/services/unary_call.h"
#include "server/services/watch_hub.h"
#include "store/records.h"
#include "store/store.h"

namespace assay {
namespace {

constexpr char kTokenList[] = "tokens";
constexpr char kEventList[] = "access events";
constexpr std::string_view kTokens = "tokens/";

absl::Status Invalid(const std::string& message) {
  return ErrorWithReason(absl::StatusCode::kInvalidArgument, "TOKEN_REQUEST_INVALID", message);
}

// Of a name with or without its collection; empty when it is none.
std::string_view TokenId(std::string_view name) {
  if (name.substr(0, kTokens.size()) == kTokens) name.remove_prefix(kTokens.size());
  const bool valid = !name.empty() && name.size() <= limits::kNameBytesMax &&
                     std::all_of(name.begin(), name.end(), [](char c) {
                       return absl::ascii_islower(static_cast<unsigned char>(c)) ||
                              absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '-';
                     });
  return valid ? name : std::string_view();
}

absl::StatusOr<std::string> TokenName(std::string_view name) {
  const std::string_view id = TokenId(name);
  if (!id.empty()) return absl::StrCat(Av(kTokens), Av(id));
  return ErrorWithReason(absl::StatusCode::kInvalidArgument, "NAME_INVALID",
                         absl::StrCat("a token is named tokens/ID, with an ID of 1 to ",
                                      limits::kNameBytesMax, " of [a-z0-9-]"));
}

absl::Status CheckLimit(std::string_view field, int value) {
  if (value >= 0 && value <= limits::kTokenLimitMax) return absl::OkStatus();
  return Invalid(
      absl::StrCat(Av(field), " is ", value, "; 0 (the default) to ", limits::kTokenLimitMax));
}

// The end of the year 9999: later timestamps have no text.
constexpr int64_t kTimestampSecondsMax = 253'402'300'799;

// What a client asked for, checked, without what only the server sets.
absl::StatusOr<v1::Token> AdmitToken(const v1::Token& sent, absl::Time now) {
  v1::Token token;
  ASSAY_ASSIGN_OR_RETURN(*token.mutable_name(), TokenName(sent.name()));
  if (sent.scopes().empty()) return Invalid("scopes is empty; name READ, SUBMIT, ADMIN or WORK");
  for (const int scope : sent.scopes()) {
    if (scope == v1::Token::SCOPE_UNSPECIFIED || !v1::Token::Scope_IsValid(scope)) {
      return Invalid(absl::StrCat("scopes has ", scope, "; name READ, SUBMIT, ADMIN or WORK"));
    }
    if (std::find(token.scopes().begin(), token.scopes().end(), scope) == token.scopes().end()) {
      token.add_scopes(static_cast<v1::Token::Scope>(scope));
    }
  }
  if (sent.has_expire_time()) {
    const auto& time = sent.expire_time();
    if (time.seconds() > kTimestampSecondsMax || time.nanos() < 0 ||
        time.nanos() >= 1'000'000'000) {
      return Invalid("expire_time is no date up to the year 9999");
    }
    if (ToUnixNanos(sent.expire_time()) <= absl::ToUnixNanos(now)) {
      return Invalid("expire_time is past; leave it out for a token that does not expire");
    }
    *token.mutable_expire_time() = sent.expire_time();
  }
  ASSAY_RETURN_IF_ERROR(CheckLimit("requests_per_second", sent.requests_per_second()));
  ASSAY_RETURN_IF_ERROR(CheckLimit("requests_burst", sent.requests_burst()));
  ASSAY_RETURN_IF_ERROR(
      CheckLimit("unfinished_evaluations_max", sent.unfinished_evaluations_max()));
  token.set_requests_per_second(sent.requests_per_second());
  token.set_requests_burst(sent.requests_burst());
  token.set_unfinished_evaluations_max(sent.unfinished_evaluations_max());
  *token.mutable_create_time() = ToTimestamp(now);
  return token;
}

class AccessServiceImpl final : public v1::AccessService::CallbackService {
 public:
  explicit AccessServiceImpl(const ServiceContext& services) : services_(services) {}

  grpc::ServerUnaryReactor* CreateToken(grpc::CallbackServerContext* context,
                                        const v1::CreateTokenRequest* request,
                                        v1::CreateTokenResponse* response) override {
    const UnaryCall call(services_, context, Rpc::kCreateToken, request->token().name());
    return call.Run([&] {
      auto token = AdmitToken(request->token(), services_.clock->Now());
      if (!token.ok()) return call.Finish(token.status());
      if (services_.access->token_count() >= limits::kTokensMax) {
        return call.Finish(ErrorWithReason(
            absl::StatusCode::kResourceExhausted, "TOO_MANY_TOKENS",
            absl::StrCat("there are ", limits::kTokensMax, " tokens, revoked ones included")));
      }
      const std::string secret = NewSecret();
      StoredToken stored{*std::move(token), SecretDigest(secret)};
      // Or a name would be used up by a token that nobody was given.
      services_.store->CreateToken(
          stored, call.MakeRecord(),
          [this, call, stored, secret, response](absl::StatusOr<v1::Token> created) {
            if (!created.ok()) return call.Finish(created.status());
            services_.access->PutToken(stored);
            response->mutable_token()->Swap(&*created);
            response->set_secret(secret);
            call.FinishRecorded();
          });
    });
  }

  grpc::ServerUnaryReactor* ListTokens(grpc::CallbackServerContext* context,
                                       const v1::ListTokensRequest* request,
                                       v1::ListTokensResponse* response) override {
    const UnaryCall call(services_, context, Rpc::kListTokens);
    return call.FinishWith([&]() -> absl::Status {
      ASSAY_ASSIGN_OR_RETURN(const Page page,
                             MakePage(kTokenList, request->page_size(), request->page_token()));
      // The key of a page is the last name on it. One more tells whether there are more.
      const size_t size = static_cast<size_t>(page.size);
      std::vector<v1::Token> tokens = services_.access->Tokens(page.after, size + 1);
      const bool more = tokens.size() > size;
      if (more) tokens.pop_back();
      for (v1::Token& token : tokens) response->add_tokens()->Swap(&token);
      if (more) {
        response->set_next_page_token(
            EncodePageToken(kTokenList, response->tokens(response->tokens_size() - 1).name()));
      }
      return absl::OkStatus();
    });
  }

  grpc::ServerUnaryReactor* RevokeToken(grpc::CallbackServerContext* context,
                                        const v1::RevokeTokenRequest* request,
                                        v1::Token* response) override {
    const UnaryCall call(services_, context, Rpc::kRevokeToken, request->name());
    return call.Run([&] {
      const auto name = TokenName(request->name());
      if (!name.ok()) return call.Finish(name.status());
      services_.store->RevokeToken(*name, services_.clock->Now(),
                                   [this, call, response](absl::StatusOr<v1::Token> revoked) {
                                     if (revoked.ok()) {
                                       services_.access->UpdateToken(*revoked);
                                       services_.watches->CheckAccess();
                                       response->Swap(&*revoked);
                                     }
                                     call.Finish(revoked.status());
                                   });
    });
  }

  grpc::ServerUnaryReactor* ListAccessEvents(grpc::CallbackServerContext* context,
                                             const v1::ListAccessEventsRequest* request,
                                             v1::ListAccessEventsResponse* response) override {
    const UnaryCall call(services_, context, Rpc::kListAccessEvents);
    auto page = MakePage(kEventList, request->page_size(), request->page_token());
    if (!page.ok()) return call.FinishNow(page.status());
    return call.FinishOn(
        services_.reads, [this, page = *std::move(page), response]() -> absl::Status {
          ASSAY_ASSIGN_OR_RETURN(auto listed, services_.store->ListAccessEvents(page));
          for (v1::AccessEvent& event : listed.items) {
            response->add_events()->Swap(&event);
          }
          response->set_next_page_token(EncodePageToken(kEventList, listed.next));
          return absl::OkStatus();
        });
  }

 private:
  const ServiceContext services_;
};

// Starts a write of the store and waits for its end.
template <typename T, typename Start>
absl::StatusOr<T> Await(const Start& start) {
  absl::Notification done;
  absl::StatusOr<T> result;
  start([&](absl::StatusOr<T> value) {
    result = std::move(value);
    done.Notify();
  });
  done.WaitForNotification();
  return result;
}

}  // namespace

std::unique_ptr<grpc::Service> MakeAccessService(const ServiceContext& context) {
  return std::make_unique<AccessServiceImpl>(context);
}

absl::StatusOr<std::string> CreateAdminToken(const std::string& name, Clock* clock, Store* store) {
  v1::Token asked;
  asked.set_name(name);
  asked.add_scopes(v1::Token::ADMIN);
  ASSAY_ASSIGN_OR_RETURN(v1::Token token, AdmitToken(asked, clock->Now()));
  const std::string secret = NewSecret();
  NewAccessEvent record;
  *record.event.mutable_time() = token.create_time();
  record.event.set_method("assay-server --create-admin-token");
  record.event.set_resource(token.name());
  record.event.set_code(absl::StatusCodeToString(absl::StatusCode::kOk));
  ASSAY_RETURN_IF_ERROR(
      Await<v1::Token>([&](StoreDone<v1::Token> done) {
        store->CreateToken({token, SecretDigest(secret)}, record, std::move(done));
      }).status());
  return secret;
}

}  // namespace assay
