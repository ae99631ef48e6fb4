#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/streaming_stores.h"
#include "kernels/tolerance/tolerance.h"

namespace assay {
namespace {

// Quiet NaNs with a payload that no instruction yields by itself.
constexpr uint64_t kPoisonF64 = 0x7ffca5a5a5a5a5a5u;
constexpr uint32_t kPoisonF32 = 0x7fc5a5a5u;
constexpr uint16_t kPoisonF16 = 0x7ea5u;
constexpr uint16_t kPoisonBF16 = 0x7fe5u;
constexpr uint32_t kPoisonI32 = 0xa5a5a5a5u;
constexpr uint8_t kPoisonI8 = 0xa5u;

template <typename T>
void Fill(T pattern, std::span<std::byte> bytes) {
  for (size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
    std::memcpy(bytes.data() + i, &pattern, sizeof(T));
  }
}

// `pattern` everywhere in bytes that the caches cannot hold.
template <typename T>
void FillLarge(T pattern, std::span<std::byte> bytes) {
  alignas(64) std::array<std::byte, 16 << 10> part;
  Fill(pattern, part);
  for (size_t at = 0; at < bytes.size(); at += part.size()) {
    StreamCopy(std::span(part).first(std::min(part.size(), bytes.size() - at)), bytes.data() + at);
  }
  EndStreaming();
}

template <typename T>
int64_t Count(T pattern, std::span<const std::byte> bytes) {
  int64_t count = 0;
  for (size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + i, sizeof(T));
    count += value == pattern;
  }
  return count;
}

// Calls `use` with the pattern of `dtype`.
template <typename Use>
auto WithPattern(DataType dtype, Use use) {
  switch (dtype) {
    case DataType::kF64:
      return use(kPoisonF64);
    case DataType::kF32:
      return use(kPoisonF32);
    case DataType::kF16:
      return use(kPoisonF16);
    case DataType::kBF16:
      return use(kPoisonBF16);
    case DataType::kI32:
      return use(kPoisonI32);
    case DataType::kI8:
    case DataType::kU8:
      break;
  }
  return use(kPoisonI8);
}

}  // namespace

void PoisonOutput(const TensorShape& tensor, std::span<std::byte> bytes) {
  PoisonOutput(tensor, bytes, AllElements(tensor));
}

void PoisonOutput(const TensorShape& tensor, std::span<std::byte> bytes, ElementRange range) {
  const size_t size = DataTypeSize(tensor.dtype);
  const std::span<std::byte> part = bytes.subspan(
      static_cast<size_t>(range.begin) * size, static_cast<size_t>(range.end - range.begin) * size);
  WithPattern(tensor.dtype, [part, large = ExceedsCaches(bytes.size())](auto pattern) {
    large ? FillLarge(pattern, part) : Fill(pattern, part);
  });
}

int64_t CountPoisoned(const TensorShape& tensor, std::span<const std::byte> bytes) {
  return WithPattern(tensor.dtype, [bytes](auto pattern) { return Count(pattern, bytes); });
}

std::vector<int64_t> UnflattenIndex(const TensorShape& tensor, int64_t flat) {
  std::vector<int64_t> index(tensor.dims.size());
  for (size_t d = tensor.dims.size(); d > 0; --d) {
    index[d - 1] = flat % tensor.dims[d - 1];
    flat /= tensor.dims[d - 1];
  }
  return index;
}

}  // namespace assay
