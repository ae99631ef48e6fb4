#include "base/random.h"

#include <sys/random.h>

#include <cstdlib>

#include "absl/strings/escaping.h"

namespace assay {
namespace {

void Fill(void* out, size_t bytes) {
  auto* next = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t got = getrandom(next, bytes, 0);
    if (got < 0) std::abort();
    next += got;
    bytes -= static_cast<size_t>(got);
  }
}

}  // namespace

uint64_t SecureRandom64() {
  uint64_t value;
  Fill(&value, sizeof(value));
  return value;
}

std::string SecureRandomHex(size_t bytes) {
  std::string raw(bytes, '\0');
  Fill(raw.data(), raw.size());
  return absl::BytesToHexString(raw);
}

}  // namespace assay
