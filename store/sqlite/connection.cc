#include "store/sqlite/connection.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/strings.h"

namespace assay {
namespace {

// The page size is a compromise: a candidate of 2 KiB wastes half of a 4 KiB page, while larger
// pages make each touched index page dearer in the WAL.
constexpr char kWriterPragmas[] =
    "PRAGMA page_size = 8192;"
    "PRAGMA journal_mode = WAL;"
    "PRAGMA synchronous = FULL;"
    "PRAGMA foreign_keys = ON;"
    "PRAGMA trusted_schema = OFF;"
    "PRAGMA temp_store = MEMORY;"
    "PRAGMA cache_size = -65536;";
constexpr char kReaderPragmas[] =
    "PRAGMA query_only = ON;"
    "PRAGMA trusted_schema = OFF;"
    "PRAGMA temp_store = MEMORY;"
    "PRAGMA cache_size = -8192;";
constexpr char kCopyPragmas[] =
    "PRAGMA synchronous = OFF;"
    "PRAGMA journal_mode = DELETE;";

}  // namespace

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(const std::string& path, Role role) {
  sqlite3* db = nullptr;
  const int create = role == Role::kReader ? 0 : SQLITE_OPEN_CREATE;
  // NOMUTEX: each connection has one user at a time. A reader of a WAL file opens it for writing
  // because it shares the index in `-shm`.
  const int code = sqlite3_open_v2(path.c_str(), &db,
                                   SQLITE_OPEN_READWRITE | create | SQLITE_OPEN_NOMUTEX, nullptr);
  if (code != SQLITE_OK) {
    absl::Status status = SqliteError(db, code, absl::StrCat("cannot open ", path));
    sqlite3_close(db);
    return status;
  }
  std::unique_ptr<Connection> connection(new Connection(db));
  absl::Status status = connection->Configure(role);
  if (!status.ok()) return Annotate(status, path);
  return connection;
}

Connection::~Connection() {
  cache_.clear();
  sqlite3_close(db_);
}

absl::Status Connection::Configure(Role role) {
  sqlite3_extended_result_codes(db_, 1);
  sqlite3_busy_timeout(db_, kBusyTimeoutMs);
  // The writer checkpoints on its own terms, the others never; this is what keeps the store clear
  // of the WAL-reset bug.
  sqlite3_wal_autocheckpoint(db_, 0);
  if (role == Role::kReader) {
    sqlite3_db_config(db_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  }
  sqlite3_db_config(db_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  switch (role) {
    case Role::kWriter:
      return Execute(kWriterPragmas);
    case Role::kReader:
      return Execute(kReaderPragmas);
    case Role::kCopy:
      return Execute(kCopyPragmas);
  }
  return absl::InternalError("unknown role of a connection");
}

absl::Status Connection::Execute(const std::string& sql) {
  if (sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) {
    return absl::OkStatus();
  }
  constexpr size_t kShownMax = 120;
  return SqliteError(db_, sqlite3_extended_errcode(db_), sql.substr(0, kShownMax));
}

absl::StatusOr<int64_t> Connection::QueryInt(std::string_view sql) {
  ASSAY_ASSIGN_OR_RETURN(Statement statement, Prepare(sql));
  ASSAY_ASSIGN_OR_RETURN(const bool row, statement.Step());
  return row ? statement.Int(0) : 0;
}

absl::StatusOr<Statement> Connection::Prepare(std::string_view sql) {
  sqlite3_stmt* handle = nullptr;
  const int code =
      sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()), 0, &handle, nullptr);
  if (code != SQLITE_OK) return SqliteError(db_, code, sql);
  return Statement(db_, handle);
}

absl::StatusOr<ScopedStatement> Connection::Cached(std::string_view sql) {
  auto found = cache_.find(sql);
  if (found == cache_.end()) {
    sqlite3_stmt* handle = nullptr;
    const int code = sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &handle, nullptr);
    if (code != SQLITE_OK) return SqliteError(db_, code, sql);
    found = cache_.try_emplace(sql, db_, handle).first;
  }
  return ScopedStatement(&found->second);
}

bool HasWalResetBug(int version) {
  if (version < 3'007'000 || version >= 3'051'003) return false;
  const int branch = version / 1000;
  const int patch = version % 1000;
  if (branch == 3'044) return patch < 6;
  if (branch == 3'050) return patch < 7;
  return true;
}

}  // namespace assay
