// Writes the WAL file ahead of its use.
//
// A commit that appends to a file must have the file's new size on disk too, and fdatasync then
// waits for the file system's journal as well as for the data. A commit into a part of the WAL that
// was written before waits for the data alone, which takes about half as long. A WAL that was in
// use once is such a file; reserving makes a fresh one the same.
#ifndef ASSAY_STORE_SQLITE_WAL_RESERVE_H_
#define ASSAY_STORE_SQLITE_WAL_RESERVE_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "store/sqlite/connection.h"

namespace assay {

// Lengthens the WAL of `db` with zeros, which no reader or recovery takes for frames, to
// `target_bytes`, and syncs it. Looks at `go_on` before every piece and ends early, with OK, when
// it says no. `db` must be the only connection that writes, outside a transaction. Blocks for the
// writing of one piece (16 MiB) at a time. RESOURCE_EXHAUSTED, and nothing written, unless the disk
// has eight times as much free space; after an error the file has its former size.
absl::Status ReserveWal(Connection& db, int64_t target_bytes, const std::function<bool()>& go_on);

}  // namespace assay

#endif  // ASSAY_STORE_SQLITE_WAL_RESERVE_H_
