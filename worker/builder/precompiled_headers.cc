#include "worker/builder/precompiled_headers.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/status.h"

namespace assay {

std::string PrecompiledHeaders::Path(const std::string& key) const {
  return absl::StrCat(directory_, "/", key, ".pch");
}

std::optional<std::string> PrecompiledHeaders::Find(const std::string& key) const {
  const std::string path = Path(key);
  if (utimensat(AT_FDCWD, path.c_str(), nullptr, 0) != 0) return std::nullopt;
  return path;
}

bool PrecompiledHeaders::ShouldMake(const std::string& key) {
  absl::MutexLock lock(&mutex_);
  if (asked_.size() >= limits::kPrecompiledHeaderSetsMax && asked_.count(key) == 0) asked_.clear();
  return ++asked_[key] == 2;
}

absl::Status PrecompiledHeaders::Store(const std::string& key, std::string_view bytes) const {
  ASSAY_RETURN_IF_ERROR(CreateDirectories(directory_));
  ASSAY_RETURN_IF_ERROR(WriteFileAtomically(Path(key), bytes));
  if (chmod(Path(key).c_str(), 0444) != 0) return ErrnoError(errno, "chmod of " + Path(key));
  Trim(Path(key));
  return absl::OkStatus();
}

void PrecompiledHeaders::Trim(const std::string& keep) const {
  namespace fs = std::filesystem;
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  int64_t total = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory_, error)) {
    const auto size = static_cast<int64_t>(entry.file_size(error));
    const fs::file_time_type time = entry.last_write_time(error);
    if (error) continue;
    total += size;
    if (entry.path() != keep) files.push_back({time, entry.path()});
  }
  std::sort(files.begin(), files.end());
  for (const auto& [time, path] : files) {
    if (total <= bytes_max_) return;
    const auto size = static_cast<int64_t>(fs::file_size(path, error));
    if (fs::remove(path, error)) total -= size;
  }
}

bool IsReachableByAll(const std::string& path) {
  std::filesystem::path folder = std::filesystem::absolute(path);
  struct stat info;
  do {
    if (stat(folder.c_str(), &info) == 0 && (info.st_mode & S_IXOTH) == 0) return false;
    folder = folder.parent_path();
  } while (folder != folder.root_path());
  return true;
}

}  // namespace assay
