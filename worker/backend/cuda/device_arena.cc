#include "worker/backend/cuda/device_arena.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace assay {
namespace {

// Between two buffers, and before the first and after the last.
constexpr size_t kGuardBytesMin = 16 << 10;
constexpr size_t kGuardBytesMax = 64 << 10;
constexpr size_t kPatternBytes = 64 << 10;

size_t RoundUp(size_t bytes) { return (bytes + kDeviceAlignment - 1) & ~(kDeviceAlignment - 1); }

}  // namespace

DeviceArena::DeviceArena(DeviceContext* context, uint64_t seed)
    : context_(context), random_(seed), pattern_(kPatternBytes) {
  for (std::byte& byte : pattern_) byte = static_cast<std::byte>(random_());
}

DeviceArena::~DeviceArena() {
  if (base_ == 0 || context_->is_lost()) return;
  (void)context_->driver().functions().cuMemFree(base_);
}

cuda::CUresult DeviceArena::Allocate(const std::vector<size_t>& bytes) {
  bytes_ = kGuardBytesMax;
  for (const size_t size : bytes) {
    buffers_.push_back({size, 0});
    if (size > 0) bytes_ += RoundUp(size) + kGuardBytesMax;
  }
  const cuda::CUresult got = context_->driver().functions().cuMemAlloc(&base_, bytes_);
  if (got != cuda::CUDA_SUCCESS) base_ = 0;
  return got;
}

std::span<const std::byte> DeviceArena::PatternAt(size_t at, size_t bytes) const {
  const size_t from = (at + phase_) % pattern_.size();
  return std::span(pattern_).subspan(from, std::min(bytes, pattern_.size() - from));
}

absl::Status DeviceArena::Rearrange() {
  std::vector<size_t> order;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (buffers_[i].bytes > 0) order.push_back(i);
  }
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_.Below(i)]);
  guards_.clear();
  phase_ = random_.Below(pattern_.size());
  size_t at = 0;
  for (const size_t index : order) {
    constexpr size_t kPlaces = (kGuardBytesMax - kGuardBytesMin) / kDeviceAlignment + 1;
    const size_t gap_from = at;
    at = RoundUp(at) + kGuardBytesMin + kDeviceAlignment * random_.Below(kPlaces);
    guards_.push_back({gap_from, at});
    buffers_[index].address = base_ + at;
    at += buffers_[index].bytes;
  }
  guards_.push_back({at, bytes_});
  for (const Zone& zone : guards_) {
    for (size_t from = zone.begin; from < zone.end;) {
      const std::span<const std::byte> part = PatternAt(from, zone.end - from);
      const absl::Status written = context_->Upload(base_ + from, part);
      if (!written.ok()) return written;
      from += part.size();
    }
  }
  return absl::OkStatus();
}

BrokenGuard DeviceArena::Locate(size_t at) const {
  BrokenGuard nearest;
  uint64_t distance_min = ~uint64_t{0};
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (buffers_[i].bytes == 0) continue;
    const int64_t offset =
        static_cast<int64_t>(base_ + at) - static_cast<int64_t>(buffers_[i].address);
    const uint64_t distance = static_cast<uint64_t>(
        offset < 0 ? -offset : offset - static_cast<int64_t>(buffers_[i].bytes) + 1);
    if (distance >= distance_min) continue;
    distance_min = distance;
    nearest = {i, offset};
  }
  return nearest;
}

absl::StatusOr<std::optional<BrokenGuard>> DeviceArena::CheckGuards() {
  std::vector<std::byte> found;
  for (const Zone& zone : guards_) {
    found.resize(zone.end - zone.begin);
    const absl::Status read = context_->Download(found, base_ + zone.begin);
    if (!read.ok()) return read;
    for (size_t from = zone.begin; from < zone.end;) {
      const std::span<const std::byte> part = PatternAt(from, zone.end - from);
      const auto here = found.begin() + static_cast<ptrdiff_t>(from - zone.begin);
      const auto [want, got] = std::mismatch(part.begin(), part.end(), here);
      if (want != part.end()) {
        return Locate(from + static_cast<size_t>(want - part.begin()));
      }
      from += part.size();
    }
  }
  return std::nullopt;
}

}  // namespace assay
