// What the tests of the SQLite store reach beyond its public header.
#ifndef ASSAY_STORE_SQLITE_SQLITE_STORE_INTERNAL_H_
#define ASSAY_STORE_SQLITE_SQLITE_STORE_INTERNAL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "store/sqlite/sqlite_store.h"
#include "store/sqlite/writer.h"

namespace assay {

absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStoreWith(const SqliteStoreOptions& options,
                                                           Writer::Options writer_options);

// The database file in a data folder.
std::string DatabasePath(const std::string& directory);

}  // namespace assay

#endif  // ASSAY_STORE_SQLITE_SQLITE_STORE_INTERNAL_H_
