// The SQLite implementation of Store: WAL, synchronous FULL, STRICT tables, one writer connection
// with group commit.
#ifndef ASSAY_STORE_SQLITE_SQLITE_STORE_H_
#define ASSAY_STORE_SQLITE_SQLITE_STORE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/limits.h"
#include "store/store.h"

namespace assay {

struct SqliteStoreOptions {
  std::string directory;  // data folder; created when missing. The database is `directory`/assay.db
  int reader_count = 2;
  // Called on the writer's thread after each group of writes that became durable: how many there
  // were, and how long the commit took. Must not block.
  std::function<void(size_t operations, absl::Duration commit)> on_commit = nullptr;
  // Kept of acts, and as many of refusals.
  size_t access_events_max = limits::kAccessEventsMax;
};

// Opens, migrates and locks the data folder. FAILED_PRECONDITION with reason DATA_FOLDER_IN_USE
// (another server has it) or SCHEMA_TOO_NEW (a newer release wrote it).
absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const SqliteStoreOptions& options);

}  // namespace assay

#endif  // ASSAY_STORE_SQLITE_SQLITE_STORE_H_
