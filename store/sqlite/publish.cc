#include "store/sqlite/publish.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "store/sqlite/connection.h"

namespace assay {
namespace {

absl::Status CopyPages(Connection& from, Connection& to) {
  sqlite3_backup* backup = sqlite3_backup_init(to.handle(), "main", from.handle(), "main");
  if (backup == nullptr) {
    return SqliteError(to.handle(), sqlite3_extended_errcode(to.handle()), "cannot start a copy");
  }
  // All pages in one step are one read transaction: one moment of the database, and a later commit
  // does not start the copy over.
  const int code = sqlite3_backup_step(backup, -1);
  const int finish = sqlite3_backup_finish(backup);
  if (code != SQLITE_DONE) return SqliteError(to.handle(), code, "copy");
  if (finish != SQLITE_OK) return SqliteError(to.handle(), finish, "copy");
  return absl::OkStatus();
}

absl::Status WriteCopy(const std::string& source, const std::string& path) {
  ASSAY_ASSIGN_OR_RETURN(const std::unique_ptr<Connection> from,
                         Connection::Open(source, Connection::Role::kReader));
  ASSAY_ASSIGN_OR_RETURN(const std::unique_ptr<Connection> to,
                         Connection::Open(path, Connection::Role::kCopy));
  ASSAY_RETURN_IF_ERROR(CopyPages(*from, *to));
  // The copied header says WAL.
  ASSAY_ASSIGN_OR_RETURN(Statement pragma, to->Prepare("PRAGMA journal_mode = DELETE"));
  ASSAY_ASSIGN_OR_RETURN(const bool row, pragma.Step());
  if (!row || pragma.Text(0) != "delete") {
    return absl::InternalError(absl::StrCat(path, " did not change to journal mode DELETE"));
  }
  pragma.Reset();
  // Readers of dashboards need not know who may do what. The freed pages are zeroed.
  return to->Execute("PRAGMA secure_delete = ON; DELETE FROM tokens; DELETE FROM access_events");
}

absl::Status SyncPath(const std::string& path, int flags) {
  UniqueFd fd(open(path.c_str(), flags | O_CLOEXEC));
  if (!fd.valid()) return ErrnoError(errno, absl::StrCat("cannot open ", path));
  if (fsync(fd.get()) != 0) return ErrnoError(errno, absl::StrCat("cannot sync ", path));
  return absl::OkStatus();
}

void RemoveLeftovers(const std::string& temporary) {
  for (const char* suffix : {"", "-journal", "-wal", "-shm"}) {
    unlink(absl::StrCat(temporary, suffix).c_str());
  }
}

}  // namespace

absl::Status PublishDatabase(const std::string& source, const std::string& target) {
  const std::string temporary = absl::StrCat(target, ".tmp");
  RemoveLeftovers(temporary);
  absl::Status status = WriteCopy(source, temporary);
  if (status.ok()) status = SyncPath(temporary, O_RDONLY);
  if (status.ok() && rename(temporary.c_str(), target.c_str()) != 0) {
    status = ErrnoError(errno, absl::StrCat("cannot rename ", temporary));
  }
  if (status.ok()) {
    const std::string folder = std::filesystem::path(target).parent_path().string();
    status = SyncPath(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY);
  }
  if (!status.ok()) RemoveLeftovers(temporary);
  return Annotate(status, absl::StrCat("cannot publish ", target));
}

}  // namespace assay
