// Consistent copies of a live database for readers that must not touch it.
#ifndef ASSAY_STORE_SQLITE_PUBLISH_H_
#define ASSAY_STORE_SQLITE_PUBLISH_H_

#include <string>

#include "absl/status/status.h"

namespace assay {

// Copies the database at `source` (in use, WAL) to `target` in journal mode DELETE: first to
// `target`.tmp, synced, then renamed into place, so that a reader sees the old copy or the new one.
// Does not block the writer; blocks the caller. One call at a time for one target.
absl::Status PublishDatabase(const std::string& source, const std::string& target);

}  // namespace assay

#endif  // ASSAY_STORE_SQLITE_PUBLISH_H_
