#include "worker/runner/framing.h"

#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace assay {
namespace {

// Reads exactly `count` bytes; fewer only at the end of the file.
absl::StatusOr<size_t> ReadFully(int fd, char* to, size_t count) {
  size_t got = 0;
  while (got < count) {
    const ssize_t n = read(fd, to + got, count - got);
    if (n == 0) break;
    if (n < 0) {
      if (errno == EINTR) continue;
      return ErrnoError(errno, "read of a frame");
    }
    got += static_cast<size_t>(n);
  }
  return got;
}

}  // namespace

std::string Frame(std::string_view message) {
  const uint32_t length = static_cast<uint32_t>(message.size());
  std::string out;
  out.reserve(message.size() + kFrameHeaderBytes);
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>(length >> shift));
  out.append(message);
  return out;
}

size_t FrameLength(std::string_view header) {
  size_t length = 0;
  for (size_t i = 0; i < kFrameHeaderBytes; ++i) {
    length |= static_cast<size_t>(static_cast<unsigned char>(header[i])) << (8 * i);
  }
  return length;
}

absl::StatusOr<std::string> ReadFrame(int fd, size_t bytes_max) {
  char header[kFrameHeaderBytes];
  ASSAY_ASSIGN_OR_RETURN(const size_t header_bytes, ReadFully(fd, header, sizeof header));
  if (header_bytes == 0) return absl::OutOfRangeError("the pipe ended before a frame");
  if (header_bytes < sizeof header) return absl::DataLossError("the pipe ended inside a frame");
  const size_t length = FrameLength(std::string_view(header, sizeof header));
  if (length > bytes_max) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a frame of ", length, " bytes; at most ", bytes_max, " are read"));
  }
  std::string message(length, '\0');
  ASSAY_ASSIGN_OR_RETURN(const size_t got, ReadFully(fd, message.data(), length));
  if (got < length) {
    return absl::DataLossError(
        absl::StrCat("the pipe ended after ", got, " of ", length, " bytes of a frame"));
  }
  return message;
}

}  // namespace assay
