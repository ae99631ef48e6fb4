#include "worker/builder/build_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/status.h"

namespace assay {
namespace {

constexpr size_t kDigestBytes = 64;

struct File {
  std::string path;
  int64_t bytes;
  int64_t modified_ns;
};

int64_t ModifiedNs(const struct stat& info) {
  return int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
}

}  // namespace

absl::StatusOr<BuildCache> BuildCache::Open(const std::string& directory, int64_t bytes_max,
                                            std::string suffix) {
  ASSAY_RETURN_IF_ERROR(Annotate(CreateDirectories(directory), "build cache"));
  if (access(directory.c_str(), W_OK) != 0) {
    return ErrnoError(errno, absl::StrCat("build cache ", directory));
  }
  return BuildCache(directory, bytes_max, std::move(suffix));
}

std::string BuildCache::ArtifactPath(const std::string& key) const {
  return absl::StrCat(directory_, "/", key, suffix_);
}

std::string BuildCache::NotePath(const std::string& key) const {
  return absl::StrCat(directory_, "/", key, ".note");
}

std::optional<BuildCache::Entry> BuildCache::Find(const std::string& key) const {
  // The note is written last: digest, newline, length of the report, newline, report, log.
  const absl::StatusOr<std::string> note =
      ReadFile(NotePath(key), kDigestBytes + 32 + limits::kCompilerOutputBytesMax * 8);
  if (!note.ok() || note->size() < kDigestBytes + 1) return std::nullopt;
  const size_t length_end = note->find('\n', kDigestBytes + 1);
  size_t report_bytes = 0;
  if (length_end == std::string::npos ||
      !absl::SimpleAtoi(
          absl::string_view(*note).substr(kDigestBytes + 1, length_end - kDigestBytes - 1),
          &report_bytes) ||
      report_bytes > note->size() - length_end - 1) {
    return std::nullopt;
  }
  const absl::StatusOr<std::string> artifact =
      ReadFile(ArtifactPath(key), limits::kArtifactBytesMax);
  if (!artifact.ok()) return std::nullopt;
  Entry entry;
  entry.path = ArtifactPath(key);
  entry.digest = note->substr(0, kDigestBytes);
  entry.report = note->substr(length_end + 1, report_bytes);
  entry.log = note->substr(length_end + 1 + report_bytes);
  if (Sha256Hex(*artifact) != entry.digest) return std::nullopt;
  // What is used stays.
  (void)utimensat(AT_FDCWD, entry.path.c_str(), nullptr, 0);
  (void)utimensat(AT_FDCWD, NotePath(key).c_str(), nullptr, 0);
  return entry;
}

absl::StatusOr<BuildCache::Entry> BuildCache::Store(const std::string& key,
                                                    std::string_view artifact, std::string_view log,
                                                    std::string_view report) const {
  Entry entry{ArtifactPath(key), Sha256Hex(artifact), std::string(log), std::string(report)};
  ASSAY_RETURN_IF_ERROR(WriteFileAtomically(entry.path, artifact));
  ASSAY_RETURN_IF_ERROR(WriteFileAtomically(
      NotePath(key),
      absl::StrCat(entry.digest, "\n", report.size(), "\n", entry.report, entry.log)));
  Trim(key);
  return entry;
}

void BuildCache::Trim(const std::string& keep) const {
  std::vector<File> files;
  int64_t total = 0;
  std::error_code error;
  for (const auto& item : std::filesystem::directory_iterator(directory_, error)) {
    struct stat info;
    const std::string path = item.path().string();
    if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    total += info.st_size;
    if (item.path().stem() != keep) files.push_back({path, info.st_size, ModifiedNs(info)});
  }
  if (total <= bytes_max_) return;
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.modified_ns < b.modified_ns; });
  for (const File& file : files) {
    if (total <= bytes_max_) return;
    if (unlink(file.path.c_str()) == 0) total -= file.bytes;
  }
}

}  // namespace assay
