// Tokens and access events: their writes and reads.
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "store/records.h"
#include "store/sqlite/reads.h"
#include "store/sqlite/writes.h"

namespace assay {
namespace {

// The event with its number.
absl::StatusOr<v1::AccessEvent> InsertAccessEvent(WriteContext& context,
                                                  const NewAccessEvent& event, int64_t kept_max) {
  const std::string proto = event.event.SerializeAsString();
  {
    ASSAY_ASSIGN_OR_RETURN(
        ScopedStatement insert,
        context.db.Cached("INSERT INTO access_events (refused, proto) VALUES (?1, ?2)"));
    insert->BindInt(1, event.refused ? 1 : 0);
    insert->BindBlob(2, proto);
    ASSAY_RETURN_IF_ERROR(insert->Run());
  }
  v1::AccessEvent recorded = event.event;
  recorded.set_number(context.db.last_insert_id());
  ASSAY_ASSIGN_OR_RETURN(
      ScopedStatement trim,
      context.db.Cached("DELETE FROM access_events WHERE refused = ?1 AND number <="
                        " (SELECT number FROM access_events WHERE refused = ?1"
                        " ORDER BY number DESC LIMIT 1 OFFSET ?2)"));
  trim->BindInt(1, event.refused ? 1 : 0);
  trim->BindInt(2, kept_max);
  ASSAY_RETURN_IF_ERROR(trim->Run());
  return recorded;
}

class CreateToken : public ResultOperation<v1::Token> {
 public:
  CreateToken(StoredToken token, NewAccessEvent event, int64_t kept_max, StoreDone<v1::Token> done)
      : ResultOperation(std::move(done)),
        token_(std::move(token)),
        proto_(token_.token.SerializeAsString()),
        event_(std::move(event)),
        kept_max_(kept_max) {}

 protected:
  absl::Status ApplyTo(WriteContext& context, absl::StatusOr<v1::Token>* result) override {
    ASSAY_ASSIGN_OR_RETURN(
        ScopedStatement insert,
        context.db.Cached("INSERT INTO tokens (name, digest, proto) VALUES (?1, ?2, ?3)"
                          " ON CONFLICT (name) DO NOTHING"));
    insert->BindText(1, token_.token.name());
    insert->BindText(2, token_.digest);
    insert->BindBlob(3, proto_);
    ASSAY_RETURN_IF_ERROR(insert->Run());
    if (context.db.changes() != 1) {
      *result = TokenExists(token_.token.name());
      return absl::OkStatus();
    }
    ASSAY_RETURN_IF_ERROR(InsertAccessEvent(context, event_, kept_max_).status());
    *result = token_.token;
    return absl::OkStatus();
  }

 private:
  const StoredToken token_;
  const std::string proto_;
  const NewAccessEvent event_;
  const int64_t kept_max_;
};

class RevokeToken : public ResultOperation<v1::Token> {
 public:
  RevokeToken(std::string name, absl::Time time, StoreDone<v1::Token> done)
      : ResultOperation(std::move(done)), name_(std::move(name)), time_(time) {}

 protected:
  absl::Status ApplyTo(WriteContext& context, absl::StatusOr<v1::Token>* result) override {
    v1::Token token;
    {
      ASSAY_ASSIGN_OR_RETURN(ScopedStatement select,
                             context.db.Cached("SELECT proto FROM tokens WHERE name = ?1"));
      select->BindText(1, name_);
      ASSAY_ASSIGN_OR_RETURN(const bool found, select->Step());
      if (!found) {
        *result = NotFound("TOKEN_NOT_FOUND", name_);
        return absl::OkStatus();
      }
      ASSAY_RETURN_IF_ERROR(ParseStored(select->Blob(0), &token));
    }
    if (!token.has_revoke_time()) {
      *token.mutable_revoke_time() = ToTimestamp(time_);
      const std::string proto = token.SerializeAsString();
      ASSAY_ASSIGN_OR_RETURN(ScopedStatement update,
                             context.db.Cached("UPDATE tokens SET proto = ?2 WHERE name = ?1"));
      update->BindText(1, name_);
      update->BindBlob(2, proto);
      ASSAY_RETURN_IF_ERROR(update->Run());
    }
    *result = std::move(token);
    return absl::OkStatus();
  }

 private:
  const std::string name_;
  const absl::Time time_;
};

class RecordAccessEvent : public ResultOperation<v1::AccessEvent> {
 public:
  RecordAccessEvent(NewAccessEvent event, int64_t kept_max, StoreDone<v1::AccessEvent> done)
      : ResultOperation(std::move(done)), event_(std::move(event)), kept_max_(kept_max) {}

 protected:
  absl::Status ApplyTo(WriteContext& context, absl::StatusOr<v1::AccessEvent>* result) override {
    ASSAY_ASSIGN_OR_RETURN(*result, InsertAccessEvent(context, event_, kept_max_));
    return absl::OkStatus();
  }

 private:
  const NewAccessEvent event_;
  const int64_t kept_max_;
};

}  // namespace

std::unique_ptr<WriteOperation> NewCreateToken(StoredToken token, NewAccessEvent event,
                                               int64_t kept_max, StoreDone<v1::Token> done) {
  return std::make_unique<CreateToken>(std::move(token), std::move(event), kept_max,
                                       std::move(done));
}
std::unique_ptr<WriteOperation> NewRevokeToken(std::string name, absl::Time time,
                                               StoreDone<v1::Token> done) {
  return std::make_unique<RevokeToken>(std::move(name), time, std::move(done));
}
std::unique_ptr<WriteOperation> NewRecordAccessEvent(NewAccessEvent event, int64_t kept_max,
                                                     StoreDone<v1::AccessEvent> done) {
  return std::make_unique<RecordAccessEvent>(std::move(event), kept_max, std::move(done));
}

absl::StatusOr<std::vector<StoredToken>> ReadTokens(Connection& db) {
  ASSAY_ASSIGN_OR_RETURN(ScopedStatement select,
                         db.Cached("SELECT digest, proto FROM tokens ORDER BY name"));
  std::vector<StoredToken> tokens;
  for (;;) {
    ASSAY_ASSIGN_OR_RETURN(const bool row, select->Step());
    if (!row) return tokens;
    StoredToken& token = tokens.emplace_back();
    token.digest = std::string(select->Text(0));
    ASSAY_RETURN_IF_ERROR(ParseStored(select->Blob(1), &token.token));
  }
}

absl::StatusOr<Listed<v1::AccessEvent>> ReadAccessEvents(Connection& db, const Page& page) {
  int64_t below = std::numeric_limits<int64_t>::max();
  if (!page.after.empty()) {
    ASSAY_ASSIGN_OR_RETURN(below, DecodeNumericPageToken(kAccessEventPages, page.after));
  }
  const int size = ClampPageSize(page.size);
  ASSAY_ASSIGN_OR_RETURN(ScopedStatement select,
                         db.Cached("SELECT number, proto FROM access_events WHERE number < ?1"
                                   " ORDER BY number DESC LIMIT ?2"));
  select->BindInt(1, below);
  select->BindInt(2, size + 1);
  Listed<v1::AccessEvent> listed;
  for (;;) {
    ASSAY_ASSIGN_OR_RETURN(const bool row, select->Step());
    if (!row) return listed;
    if (static_cast<int>(listed.items.size()) == size) {
      listed.next = EncodePageToken(kAccessEventPages, absl::StrCat(listed.items.back().number()));
      return listed;
    }
    v1::AccessEvent& event = listed.items.emplace_back();
    ASSAY_RETURN_IF_ERROR(ParseStored(select->Blob(1), &event));
    event.set_number(select->Int(0));
  }
}

}  // namespace assay
