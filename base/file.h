// Files and descriptors: owned descriptors, whole-file reads with a cap, atomic writes.
#ifndef ASSAY_BASE_FILE_H_
#define ASSAY_BASE_FILE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace assay {

// Owns a file descriptor. Move-only.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) Reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~UniqueFd() { Reset(); }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }
  void Reset(int fd = -1);

 private:
  int fd_ = -1;
};

// Reads a regular file of at most `bytes_max`. NOT_FOUND, PERMISSION_DENIED; RESOURCE_EXHAUSTED
// when larger; INVALID_ARGUMENT when it is not a regular file (a link is followed).
absl::StatusOr<std::string> ReadFile(const std::string& path, size_t bytes_max);

// Writes to a temporary file beside `path`, syncs it, renames it. Readers see the old content or
// the new.
absl::Status WriteFileAtomically(const std::string& path, std::string_view bytes);

// Writes everything, retrying on short writes and EINTR.
absl::Status WriteAll(int fd, std::string_view bytes);

// Reads until end of file or until `bytes_max` are there; RESOURCE_EXHAUSTED when more would come.
// Blocks.
absl::StatusOr<std::string> ReadToEnd(int fd, size_t bytes_max);

// mkdir -p with mode 0755.
absl::Status CreateDirectories(const std::string& path);

// A fresh directory under $TMPDIR or /tmp that is removed with everything in it at destruction.
class TemporaryDirectory {
 public:
  static absl::StatusOr<TemporaryDirectory> Create(std::string_view prefix);
  TemporaryDirectory(TemporaryDirectory&& other) noexcept
      : path_(std::exchange(other.path_, std::string())) {}
  TemporaryDirectory& operator=(TemporaryDirectory&&) = delete;
  ~TemporaryDirectory();
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace assay

#endif  // ASSAY_BASE_FILE_H_
