// Values of a whole warp between registers and memory that passed every check.
//
// W is the value in memory, D the register, `registers` those of a vector of `count` values.
#ifndef ASSAY_EMULATOR_OPS_MEMORY_LANES_H_
#define ASSAY_EMULATOR_OPS_MEMORY_LANES_H_

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "emulator/execute/lanes.h"
#include "emulator/execute/repeated_access.h"

namespace assay::emulator {

template <typename T>
inline T ReadAs(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

namespace memory_internal {

inline __m128 LoadQuad(const std::byte* from) {
  return _mm_loadu_ps(reinterpret_cast<const float*>(from));
}
inline void StoreQuad(std::byte* to, __m128 value) {
  _mm_storeu_ps(reinterpret_cast<float*>(to), value);
}
inline std::byte* QuadOf(const Warp* warp, uint32_t reg, int lane) {
  return warp->registers + reg + static_cast<size_t>(lane) * 4;
}

// Vectors of four 4-byte values, four lanes at a time.
inline void TakeQuads(const Warp* warp, const uint32_t* registers, const RepeatedAccess& access) {
  for (int lane = 0; lane < kLanes; lane += 4) {
    __m128 a = LoadQuad(access.at(lane));
    __m128 b = LoadQuad(access.at(lane + 1));
    __m128 c = LoadQuad(access.at(lane + 2));
    __m128 d = LoadQuad(access.at(lane + 3));
    _MM_TRANSPOSE4_PS(a, b, c, d);
    StoreQuad(QuadOf(warp, registers[0], lane), a);
    StoreQuad(QuadOf(warp, registers[1], lane), b);
    StoreQuad(QuadOf(warp, registers[2], lane), c);
    StoreQuad(QuadOf(warp, registers[3], lane), d);
  }
}

inline void PutQuads(const Warp* warp, const uint32_t* registers, const RepeatedAccess& access) {
  for (int lane = 0; lane < kLanes; lane += 4) {
    __m128 a = LoadQuad(QuadOf(warp, registers[0], lane));
    __m128 b = LoadQuad(QuadOf(warp, registers[1], lane));
    __m128 c = LoadQuad(QuadOf(warp, registers[2], lane));
    __m128 d = LoadQuad(QuadOf(warp, registers[3], lane));
    _MM_TRANSPOSE4_PS(a, b, c, d);
    StoreQuad(access.at(lane), a);
    StoreQuad(access.at(lane + 1), b);
    StoreQuad(access.at(lane + 2), c);
    StoreQuad(access.at(lane + 3), d);
  }
}

template <typename W, typename D>
inline constexpr bool kSameWord = sizeof(W) == 4 && sizeof(D) == 4;

}  // namespace memory_internal

template <typename W, typename D>
inline void TakeLanes(const Warp* warp, uint32_t mask, const uint32_t* registers, uint32_t count,
                      const RepeatedAccess& access) {
  if constexpr (memory_internal::kSameWord<W, D>) {
    if (count == 4 && mask == kAllLanes && access.pattern->kind != Pattern::kBroadcast)
      return memory_internal::TakeQuads(warp, registers, access);
  }
  for (uint32_t i = 0; i < count; ++i) {
    D* const lanes = Lanes<D>(warp, registers[i]);
    const std::byte* const start = access.start + i * sizeof(W);
    if (access.pattern->kind == Pattern::kBroadcast) {
      const auto value = static_cast<D>(ReadAs<W>(start));
      EachLane(mask, [=](int lane) { lanes[lane] = value; });
    } else if (access.pattern->kind == Pattern::kConsecutive && count == 1) {
      for (int lane = 0; lane < kLanes; ++lane) {
        lanes[lane] = static_cast<D>(ReadAs<W>(start + static_cast<size_t>(lane) * sizeof(W)));
      }
    } else {
      const uint32_t* const relative = access.pattern->relative;
      EachLane(mask,
               [=](int lane) { lanes[lane] = static_cast<D>(ReadAs<W>(start + relative[lane])); });
    }
  }
}

template <typename W, typename D>
inline void PutLanes(const Warp* warp, uint32_t mask, const uint32_t* registers, uint32_t count,
                     const RepeatedAccess& access) {
  if constexpr (memory_internal::kSameWord<W, D>) {
    if (count == 4 && mask == kAllLanes) return memory_internal::PutQuads(warp, registers, access);
  }
  const uint32_t* const relative = access.pattern->relative;
  for (uint32_t i = 0; i < count; ++i) {
    const D* const lanes = Lanes<D>(warp, registers[i]);
    std::byte* const start = access.start + i * sizeof(W);
    if (access.pattern->kind == Pattern::kConsecutive && count == 1) {
      for (int lane = 0; lane < kLanes; ++lane) {
        const auto value = static_cast<W>(lanes[lane]);
        std::memcpy(start + static_cast<size_t>(lane) * sizeof(W), &value, sizeof(W));
      }
    } else {
      EachLane(mask, [=](int lane) {
        const auto value = static_cast<W>(lanes[lane]);
        std::memcpy(start + relative[lane], &value, sizeof(W));
      });
    }
  }
}

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_OPS_MEMORY_LANES_H_
