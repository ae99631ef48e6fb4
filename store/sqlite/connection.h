// One SQLite connection with its cache of prepared statements.
//
// Not thread-safe: one thread at a time.
#ifndef ASSAY_STORE_SQLITE_CONNECTION_H_
#define ASSAY_STORE_SQLITE_CONNECTION_H_

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "store/sqlite/statement.h"

namespace assay {

class Connection {
 public:
  enum class Role {
    // Creates the file when missing; WAL, synchronous FULL. Checkpoints only when told to.
    kWriter,
    // PRAGMA query_only; never checkpoints, not even when it is closed.
    kReader,
    // A plain file in journal mode DELETE, not synced by SQLite: for copies that are synced whole.
    kCopy,
  };
  // How long a statement waits for a lock of another connection.
  static constexpr int kBusyTimeoutMs = 5000;
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const std::string& path, Role role);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Runs statements that return nothing of interest. May hold several.
  absl::Status Execute(const std::string& sql);
  // The first column of the first row, 0 without one.
  absl::StatusOr<int64_t> QueryInt(std::string_view sql);
  // A statement to be used once.
  absl::StatusOr<Statement> Prepare(std::string_view sql);
  // Prepares at the first call. `sql` must live as long as the connection (a literal). The same
  // text must not be borrowed twice at a time.
  absl::StatusOr<ScopedStatement> Cached(std::string_view sql);

  int64_t last_insert_id() const { return sqlite3_last_insert_rowid(db_); }
  int64_t changes() const { return sqlite3_changes64(db_); }
  // False too after SQLite has rolled a transaction back by itself.
  bool in_transaction() const { return sqlite3_get_autocommit(db_) == 0; }
  sqlite3* handle() const { return db_; }

 private:
  explicit Connection(sqlite3* db) : db_(db) {}
  absl::Status Configure(Role role);

  sqlite3* const db_;
  std::unordered_map<std::string_view, Statement> cache_;
};

// True for SQLite releases that can lose a commit when two connections checkpoint and write one
// WAL file at the same time (3.7.0 to 3.51.2 except 3.44.6+ and 3.50.7+ of their branches). This
// store is not exposed: a single connection writes and checkpoints. `version` as of
// sqlite3_libversion_number().
bool HasWalResetBug(int version);

}  // namespace assay

#endif  // ASSAY_STORE_SQLITE_CONNECTION_H_
