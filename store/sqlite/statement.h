// A prepared SQL statement.
//
// Not thread-safe; belongs to the thread that uses its connection, and must not outlive it. Text
// and blobs are bound without a copy: they must stay alive and unchanged until Reset. Views
// returned by Text and Blob are valid until the next Step or Reset.
#ifndef ASSAY_STORE_SQLITE_STATEMENT_H_
#define ASSAY_STORE_SQLITE_STATEMENT_H_

#include <sqlite3.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace assay {

// The reason of a failure that concerns the one statement (a constraint, a value too big) and
// leaves the database and the transaction sound.
inline constexpr char kStorageConstraint[] = "STORAGE_CONSTRAINT";

// The status for a failed SQLite call on `db` (may be null). Reasons: STORAGE_FULL
// (RESOURCE_EXHAUSTED), STORAGE_BUSY (UNAVAILABLE), STORAGE_CORRUPT (DATA_LOSS), STORAGE_UNWRITABLE
// (FAILED_PRECONDITION), STORAGE_CONSTRAINT and STORAGE_FAILED (INTERNAL).
absl::Status SqliteError(sqlite3* db, int code, std::string_view what);

class Statement {
 public:
  Statement(sqlite3* db, sqlite3_stmt* handle) : db_(db), handle_(handle) {}
  Statement(Statement&& other) noexcept
      : db_(other.db_),
        handle_(std::exchange(other.handle_, nullptr)),
        bind_code_(other.bind_code_) {}
  Statement& operator=(Statement&&) = delete;
  ~Statement() { sqlite3_finalize(handle_); }

  // Parameters count from 1. A failed bind is reported by the next Step.
  void BindInt(int index, int64_t value) { Note(sqlite3_bind_int64(handle_, index, value)); }
  // NaN is bound as NULL, as SQLite has no NaN.
  void BindDouble(int index, double value) { Note(sqlite3_bind_double(handle_, index, value)); }
  void BindText(int index, std::string_view value);
  void BindBlob(int index, std::string_view value);
  void BindNull(int index) { Note(sqlite3_bind_null(handle_, index)); }
  void BindTextOrNull(int index, std::string_view value) {
    value.empty() ? BindNull(index) : BindText(index, value);
  }

  // True: a row is there. False: done.
  absl::StatusOr<bool> Step();
  // Steps once and resets; for statements without rows.
  absl::Status Run();
  // Ready for another execution. Bindings are forgotten.
  void Reset();

  // Columns count from 0.
  int64_t Int(int column) const { return sqlite3_column_int64(handle_, column); }
  double Double(int column) const { return sqlite3_column_double(handle_, column); }
  bool IsNull(int column) const { return sqlite3_column_type(handle_, column) == SQLITE_NULL; }
  std::string_view Text(int column) const;
  std::string_view Blob(int column) const;

 private:
  void Note(int code) {
    if (code != SQLITE_OK && bind_code_ == SQLITE_OK) bind_code_ = code;
  }

  sqlite3* db_;
  sqlite3_stmt* handle_;
  int bind_code_ = SQLITE_OK;
};

// Borrows a statement and resets it at the end of the scope, so that no read transaction stays
// open and no binding dangles.
class ScopedStatement {
 public:
  explicit ScopedStatement(Statement* statement) : statement_(statement) {}
  ScopedStatement(ScopedStatement&& other) noexcept
      : statement_(std::exchange(other.statement_, nullptr)) {}
  ScopedStatement& operator=(ScopedStatement&&) = delete;
  ~ScopedStatement() {
    if (statement_ != nullptr) statement_->Reset();
  }
  Statement* operator->() const { return statement_; }
  Statement& operator*() const { return *statement_; }

 private:
  Statement* statement_;
};

}  // namespace assay

#endif  // ASSAY_STORE_SQLITE_STATEMENT_H_
