#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/status.h"
#include "base/strings.h"

namespace assay {

void UniqueFd::Reset(int fd) {
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
}

absl::StatusOr<std::string> ReadToEnd(int fd, size_t bytes_max) {
  std::string out;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t got = read(fd, buffer, sizeof(buffer));
    if (got < 0) {
      if (errno == EINTR) continue;
      return ErrnoError(errno, "read");
    }
    if (got == 0) return out;
    if (out.size() + static_cast<size_t>(got) > bytes_max) {
      return absl::ResourceExhaustedError(
          absl::StrCat("more than ", bytes_max, " bytes; the limit is ", bytes_max));
    }
    out.append(buffer, static_cast<size_t>(got));
  }
}

absl::StatusOr<std::string> ReadFile(const std::string& path, size_t bytes_max) {
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return ErrnoError(errno, absl::StrCat("cannot open ", path));
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return ErrnoError(errno, absl::StrCat("cannot stat ", path));
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is not a regular file"));
  }
  auto bytes = ReadToEnd(fd.get(), bytes_max);
  if (!bytes.ok()) return Annotate(bytes.status(), path);
  return bytes;
}

absl::Status WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = write(fd, bytes.data(), bytes.size());
    if (put < 0) {
      if (errno == EINTR) continue;
      return ErrnoError(errno, "write");
    }
    bytes.remove_prefix(static_cast<size_t>(put));
  }
  return absl::OkStatus();
}

absl::Status WriteFileAtomically(const std::string& path, std::string_view bytes) {
  const std::string temporary = absl::StrCat(path, ".", SecureRandomHex(6), ".tmp");
  UniqueFd fd(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd.valid()) return ErrnoError(errno, absl::StrCat("cannot create ", temporary));
  absl::Status status = WriteAll(fd.get(), bytes);
  if (status.ok() && fsync(fd.get()) != 0) status = ErrnoError(errno, "fsync");
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) {
    status = ErrnoError(errno, "rename");
  }
  if (!status.ok()) {
    unlink(temporary.c_str());
    return Annotate(status, absl::StrCat("cannot write ", path));
  }
  return absl::OkStatus();
}

absl::Status CreateDirectories(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return ErrnoError(error.value(), absl::StrCat("cannot create directory ", path));
  return absl::OkStatus();
}

absl::StatusOr<TemporaryDirectory> TemporaryDirectory::Create(std::string_view prefix) {
  const char* base = std::getenv("TMPDIR");
  std::string path =
      absl::StrCat(base != nullptr && *base != '\0' ? base : "/tmp", "/", Av(prefix), ".XXXXXX");
  if (mkdtemp(path.data()) == nullptr) return ErrnoError(errno, absl::StrCat("mkdtemp ", path));
  return TemporaryDirectory(std::move(path));
}

TemporaryDirectory::~TemporaryDirectory() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace assay
