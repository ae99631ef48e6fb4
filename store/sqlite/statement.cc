#include "store/sqlite/statement.h"

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/strings.h"

namespace assay {

absl::Status SqliteError(sqlite3* db, int code, std::string_view what) {
  const int primary = code & 0xff;
  const int system_error = db == nullptr ? 0 : sqlite3_system_errno(db);
  const std::string detail = absl::StrCat(
      Av(what), ": ", db == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(db), " (SQLite code ",
      code, system_error != 0 ? absl::StrCat(", errno ", system_error) : "", ")");
  const bool no_space = system_error == ENOSPC || system_error == EDQUOT;
  if (primary == SQLITE_FULL || (primary == SQLITE_IOERR && no_space)) {
    return ErrorWithReason(absl::StatusCode::kResourceExhausted, "STORAGE_FULL",
                           absl::StrCat(detail, "; free space on the disk of the data folder"));
  }
  switch (primary) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return ErrorWithReason(absl::StatusCode::kUnavailable, "STORAGE_BUSY", detail);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return ErrorWithReason(absl::StatusCode::kDataLoss, "STORAGE_CORRUPT", detail);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
      return ErrorWithReason(absl::StatusCode::kFailedPrecondition, "STORAGE_UNWRITABLE",
                             absl::StrCat(detail, "; check the owner and mode of the data folder"));
    case SQLITE_CONSTRAINT:
    case SQLITE_TOOBIG:
    case SQLITE_MISMATCH:
      return ErrorWithReason(absl::StatusCode::kInternal, kStorageConstraint, detail);
    default:
      return ErrorWithReason(absl::StatusCode::kInternal, "STORAGE_FAILED", detail);
  }
}

void Statement::BindText(int index, std::string_view value) {
  // A null pointer would bind NULL.
  const char* data = value.data() == nullptr ? "" : value.data();
  Note(sqlite3_bind_text64(handle_, index, data, value.size(), SQLITE_STATIC, SQLITE_UTF8));
}

void Statement::BindBlob(int index, std::string_view value) {
  const char* data = value.data() == nullptr ? "" : value.data();
  Note(sqlite3_bind_blob64(handle_, index, data, value.size(), SQLITE_STATIC));
}

absl::StatusOr<bool> Statement::Step() {
  if (bind_code_ != SQLITE_OK) return SqliteError(db_, bind_code_, "cannot bind a parameter");
  const int code = sqlite3_step(handle_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return SqliteError(db_, sqlite3_extended_errcode(db_), sqlite3_sql(handle_));
}

absl::Status Statement::Run() {
  absl::StatusOr<bool> row = Step();
  Reset();
  return row.status();
}

void Statement::Reset() {
  sqlite3_reset(handle_);
  sqlite3_clear_bindings(handle_);
  bind_code_ = SQLITE_OK;
}

std::string_view Statement::Text(int column) const {
  const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(handle_, column));
  if (data == nullptr) return {};
  return {data, static_cast<size_t>(sqlite3_column_bytes(handle_, column))};
}

std::string_view Statement::Blob(int column) const {
  const auto* data = static_cast<const char*>(sqlite3_column_blob(handle_, column));
  if (data == nullptr) return {};
  return {data, static_cast<size_t>(sqlite3_column_bytes(handle_, column))};
}

}  // namespace assay
