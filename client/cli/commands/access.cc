// assay tokens create|list|revoke, assay access log
#include <algorithm>
#include <iostream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/text.h"
#include "client/cli/command.h"
#include "client/cli/exit_code.h"
#include "client/cli/output.h"
#include "client/cli/rpc.h"

namespace assay {
namespace {

std::string TokenName(const std::string& word) {
  return word.find('/') == std::string::npos ? "tokens/" + word : word;
}

std::string Time(const google::protobuf::Timestamp& time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::FromUnixSeconds(time.seconds()),
                          absl::UTCTimeZone());
}

std::string Scopes(const v1::Token& token) {
  std::vector<std::string> names;
  for (const int scope : token.scopes()) {
    names.push_back(
        absl::AsciiStrToLower(v1::Token::Scope_Name(static_cast<v1::Token::Scope>(scope))));
  }
  return absl::StrJoin(names, ",");
}

std::string Standing(const v1::Token& token) {
  if (token.has_revoke_time()) return absl::StrCat("revoked ", Time(token.revoke_time()));
  if (!token.has_expire_time()) return "valid";
  const bool over = absl::FromUnixSeconds(token.expire_time().seconds()) <= absl::Now();
  return absl::StrCat(over ? "expired " : "until ", Time(token.expire_time()));
}

absl::Status SetScopes(const std::string& text, v1::Token* token) {
  for (const std::string& word :
       std::vector<std::string>(absl::StrSplit(text, ',', absl::SkipEmpty()))) {
    v1::Token::Scope scope = v1::Token::SCOPE_UNSPECIFIED;
    if (!v1::Token::Scope_Parse(absl::AsciiStrToUpper(word), &scope) ||
        scope == v1::Token::SCOPE_UNSPECIFIED) {
      return absl::InvalidArgumentError(
          absl::StrCat("--scope takes read, submit, admin and work, not '", word, "'"));
    }
    token->add_scopes(scope);
  }
  if (!token->scopes().empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("--scope is needed: read, submit, admin or work");
}

absl::StatusOr<v1::Token> TokenToCreate(const CommandContext& context) {
  ASSAY_RETURN_IF_ERROR(ExpectWords(context, 1, "one name"));
  v1::Token token;
  token.set_name(TokenName(context.arguments.positional()[0]));
  ASSAY_RETURN_IF_ERROR(SetScopes(context.arguments.Get("scope"), &token));
  if (context.arguments.Has("expire-in")) {
    absl::Duration lifetime;
    if (!absl::ParseDuration(context.arguments.Get("expire-in"), &lifetime) ||
        lifetime <= absl::ZeroDuration() || lifetime > absl::Hours(24 * 36'500)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--expire-in takes a time such as 720h or 90m, not '",
                       context.arguments.Get("expire-in"), "'"));
    }
    token.mutable_expire_time()->set_seconds(absl::ToUnixSeconds(absl::Now() + lifetime));
  }
  const auto limit = [&](const char* flag) {
    return context.arguments.GetInt(flag, 0, 1, limits::kTokenLimitMax);
  };
  ASSAY_ASSIGN_OR_RETURN(const int64_t rate, limit("requests-per-second"));
  ASSAY_ASSIGN_OR_RETURN(const int64_t burst, limit("requests-burst"));
  ASSAY_ASSIGN_OR_RETURN(const int64_t unfinished, limit("unfinished-max"));
  token.set_requests_per_second(static_cast<int32_t>(rate));
  token.set_requests_burst(static_cast<int32_t>(burst));
  token.set_unfinished_evaluations_max(static_cast<int32_t>(unfinished));
  return token;
}

absl::StatusOr<int> RunCreate(const CommandContext& context) {
  v1::CreateTokenRequest request;
  ASSAY_ASSIGN_OR_RETURN(*request.mutable_token(), TokenToCreate(context));
  Connection connection(context.server);
  v1::CreateTokenResponse response;
  ASSAY_RETURN_IF_ERROR(connection.ToStatus(
      connection.access().CreateToken(Connection::Context().get(), request, &response)));
  if (context.json) {
    std::cout << ToJson(response) << "\n";
    return kExitPassed;
  }
  // The secret alone on stdout, so that it can go to a file without being seen.
  std::cerr << "assay: " << response.token().name() << " (" << Scopes(response.token())
            << "); this secret is shown once:\n";
  std::cout << PrintableLine(response.secret()) << "\n";
  return kExitPassed;
}

absl::StatusOr<int> RunList(const CommandContext& context) {
  ASSAY_RETURN_IF_ERROR(ExpectWords(context, 0, "no words"));
  v1::ListTokensRequest request;
  request.set_page_size(limits::kPageSizeMax);
  Connection connection(context.server);
  std::vector<std::vector<std::string>> rows = {{"token", "scopes", "standing", "created"}};
  do {
    v1::ListTokensResponse response;
    ASSAY_RETURN_IF_ERROR(connection.ToStatus(
        connection.access().ListTokens(Connection::Context().get(), request, &response)));
    for (const v1::Token& token : response.tokens()) {
      if (context.json) std::cout << ToJson(token) << "\n";
      rows.push_back({token.name(), Scopes(token), Standing(token), Time(token.create_time())});
    }
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  if (!context.json) std::cout << FormatTable(rows);
  return kExitPassed;
}

absl::StatusOr<int> RunRevoke(const CommandContext& context) {
  ASSAY_RETURN_IF_ERROR(ExpectWords(context, 1, "one token"));
  v1::RevokeTokenRequest request;
  request.set_name(TokenName(context.arguments.positional()[0]));
  Connection connection(context.server);
  v1::Token token;
  ASSAY_RETURN_IF_ERROR(connection.ToStatus(
      connection.access().RevokeToken(Connection::Context().get(), request, &token)));
  std::cout << (context.json ? ToJson(token) : absl::StrCat(token.name(), " ", Standing(token)))
            << "\n";
  return kExitPassed;
}

absl::StatusOr<int> RunLog(const CommandContext& context) {
  ASSAY_RETURN_IF_ERROR(ExpectWords(context, 0, "no words"));
  ASSAY_ASSIGN_OR_RETURN(int64_t left, GetListLimit(context));
  v1::ListAccessEventsRequest request;
  request.set_page_token(context.arguments.Get("page-token"));
  Connection connection(context.server);
  std::vector<std::vector<std::string>> rows = {
      {"number", "time", "token", "peer", "method", "resource", "code"}};
  do {
    request.set_page_size(static_cast<int32_t>(std::min<int64_t>(left, limits::kPageSizeMax)));
    v1::ListAccessEventsResponse response;
    ASSAY_RETURN_IF_ERROR(connection.ToStatus(
        connection.access().ListAccessEvents(Connection::Context().get(), request, &response)));
    for (const v1::AccessEvent& event : response.events()) {
      if (context.json) std::cout << ToJson(event) << "\n";
      rows.push_back({absl::StrCat(event.number()), Time(event.time()), event.token(), event.peer(),
                      event.method(), event.resource(), event.code()});
    }
    left -= response.events_size();
    request.set_page_token(response.next_page_token());
  } while (left > 0 && !request.page_token().empty());
  if (!context.json) std::cout << FormatTable(rows, {0});
  TellOfMore(request.page_token());
  return kExitPassed;
}

}  // namespace

std::vector<Command> AccessCommands() {
  return {
      {.name = "tokens create",
       .usage = "NAME --scope read|submit|admin|work[,...] [--expire-in TIME]\n"
                "    [--requests-per-second N] [--requests-burst N] [--unfinished-max N] [--json]",
       .help = "Create a token and print its secret, once",
       .flags = {.valued = {"scope", "expire-in", "requests-per-second", "requests-burst",
                            "unfinished-max"},
                 .switches = {}},
       .run = RunCreate},
      {.name = "tokens list",
       .usage = "[--json]",
       .help = "List the tokens, revoked ones too",
       .flags = {},
       .run = RunList},
      {.name = "tokens revoke",
       .usage = "NAME [--json]",
       .help = "End a token at once and for good",
       .flags = {},
       .run = RunRevoke},
      {.name = "access log",
       .usage = "[--limit N] [--page-token TOKEN] [--json]",
       .help = "List what administrators did and who was refused, newest first",
       .flags = {.valued = {"limit", "page-token"}, .switches = {}},
       .run = RunLog}};
}

}  // namespace assay
