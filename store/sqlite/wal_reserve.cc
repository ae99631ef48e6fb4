#include "store/sqlite/wal_reserve.h"

#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace assay {
namespace {

constexpr int64_t kPieceBytes = int64_t{16} << 20;
constexpr int kBlockBytes = 1 << 16;  // SQLite writes less than 128 KiB at a time
constexpr int64_t kFreeFactor = 8;

absl::Status CheckFreeSpace(sqlite3* db, int64_t bytes) {
  const char* path = sqlite3_filename_wal(sqlite3_db_filename(db, "main"));
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(path, error);
  if (!error && space.available / kFreeFactor >= static_cast<uint64_t>(bytes)) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("the disk of ", path, " has not ", kFreeFactor * bytes, " bytes free"));
}

// Writes zeros from `start` to `end` and syncs.
int WriteZeros(sqlite3_file* file, int64_t start, int64_t end) {
  const std::string zeros(kBlockBytes, '\0');
  int code = SQLITE_OK;
  for (int64_t at = start; code == SQLITE_OK && at < end; at += kBlockBytes) {
    const auto size = static_cast<int>(std::min<int64_t>(kBlockBytes, end - at));
    code = file->pMethods->xWrite(file, zeros.data(), size, at);
  }
  return code == SQLITE_OK ? file->pMethods->xSync(file, SQLITE_SYNC_NORMAL) : code;
}

}  // namespace

absl::Status ReserveWal(Connection& db, int64_t target_bytes, const std::function<bool()>& go_on) {
  sqlite3_file* file = nullptr;
  int code = sqlite3_file_control(db.handle(), "main", SQLITE_FCNTL_JOURNAL_POINTER, &file);
  // Without methods: no commit has opened the WAL yet.
  if (code != SQLITE_OK || file == nullptr || file->pMethods == nullptr) return absl::OkStatus();
  sqlite3_int64 size = 0;
  code = file->pMethods->xFileSize(file, &size);
  if (code == SQLITE_OK && size < target_bytes) {
    ASSAY_RETURN_IF_ERROR(CheckFreeSpace(db.handle(), target_bytes - size));
  }
  while (code == SQLITE_OK && size < target_bytes && go_on()) {
    const int64_t end = std::min<int64_t>(target_bytes, size + kPieceBytes);
    code = WriteZeros(file, size, end);
    if (code != SQLITE_OK) file->pMethods->xTruncate(file, size);
    size = end;
  }
  return code == SQLITE_OK ? absl::OkStatus() : SqliteError(nullptr, code, "reserving the WAL");
}

}  // namespace assay
