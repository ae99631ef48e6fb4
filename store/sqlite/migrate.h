// The schema's history: SQL files in store/migrations, applied in order, one transaction each; the
// number of the last one is the database's user_version. Files that were released never change.
#ifndef ASSAY_STORE_SQLITE_MIGRATE_H_
#define ASSAY_STORE_SQLITE_MIGRATE_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "store/sqlite/connection.h"

namespace assay {

struct Migration {
  int version;  // 1, 2, 3, ...
  const char* name;
  const char* sql;
};

// All of this release. Generated.
absl::Span<const Migration> Migrations();

// Brings the database to the last of `migrations`. FAILED_PRECONDITION with reason SCHEMA_TOO_NEW
// when it is past it; nothing is changed then.
absl::Status Migrate(Connection& connection, absl::Span<const Migration> migrations);

// Makes `enum_names` hold the names of this release's enums, for the views.
absl::Status WriteEnumNames(Connection& connection);

}  // namespace assay

#endif  // ASSAY_STORE_SQLITE_MIGRATE_H_
