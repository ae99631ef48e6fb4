#include "base/cpu_caches.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace assay {
namespace {

constexpr size_t kFileBytesMax = 1 << 16;
constexpr int kCacheIndicesMax = 8;
constexpr int64_t kLastLevelGuess = 64 << 20;
constexpr int64_t kCoreGuess = 2 << 20;

// Empty when it cannot be read.
std::string ReadWord(const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(path, kFileBytesMax);
  if (!text.ok()) return "";
  absl::StripAsciiWhitespace(&*text);
  return *std::move(text);
}

// "512K", "8M" in bytes; 0 when it is neither.
int64_t CacheBytes(const std::string& text) {
  if (text.empty()) return 0;
  int64_t value = 0;
  if (!absl::SimpleAtoi(text.substr(0, text.size() - 1), &value)) return 0;
  if (text.back() == 'K') return value << 10;
  if (text.back() == 'M') return value << 20;
  return 0;
}

}  // namespace

CpuCaches ReadCpuCaches(const std::string& root) {
  CpuCaches caches;
  for (int i = 0; i < kCacheIndicesMax; ++i) {
    const std::string cache = absl::StrCat(root, "/sys/devices/system/cpu/cpu0/cache/index", i);
    const std::string level = ReadWord(cache + "/level");
    if (ReadWord(cache + "/type") == "Instruction") continue;
    const int64_t bytes = CacheBytes(ReadWord(cache + "/size"));
    if (level == "1") caches.l1_bytes = bytes;
    if (level == "2") caches.l2_bytes = bytes;
    if (level == "3") caches.l3_bytes = bytes;
  }
  return caches;
}

size_t LastLevelCacheBytes() {
  static const int64_t bytes = [] {
    const CpuCaches caches = ReadCpuCaches("");
    const int64_t largest = std::max({caches.l1_bytes, caches.l2_bytes, caches.l3_bytes});
    if (largest > 0) return largest;
    // Second, since the C library adds up all caches of a package on some processors.
    const int64_t told = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return told > 0 ? told : kLastLevelGuess;
  }();
  return static_cast<size_t>(bytes);
}

size_t CoreCacheBytes() {
  static const int64_t bytes = [] {
    const int64_t own = ReadCpuCaches("").l2_bytes;
    return own > 0 ? own : kCoreGuess;
  }();
  return static_cast<size_t>(bytes);
}

}  // namespace assay
