/* assay-candidate
problem: "gemv_w2a8"
language: CPP
label: "avx2"
*/
// The codes stay unsigned (0..2): sum((q - 1) x) = sum(q x) - sum(x). The activations are split
// once into four planes, one for each position in a byte, so that masks line 32 codes up with 32
// activations for vpmaddubsw. Codes 1 and 3 of a byte stay two bits up, which saves shifts: their
// sums come out four times too large, are gathered apart and divided exactly at the end. A pair of
// products of two planes is then at most 2 * 2 * 8 * 128, and 7 of them fit a 16-bit sum. Two rows
// share the loads of the planes.
#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace {

constexpr int64_t kBytes = 32;         // packed bytes in a vector
constexpr int64_t kVectorsPerSum = 7;  // additions that a 16-bit sum can take

int32_t HorizontalSum(__m256i v) {
  __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1));
  return _mm_cvtsi128_si32(sum);
}

// Sums of code * activation of R rows over the whole vectors of `bytes`. planes: for each vector of
// packed bytes, four vectors of activations.
template <int R>
void SumRows(const uint8_t* w, int64_t bytes, const int8_t* planes, int32_t* sums) {
  const __m256i low_mask = _mm256_set1_epi8(0x03);
  const __m256i high_mask = _mm256_set1_epi8(0x0c);
  const __m256i ones = _mm256_set1_epi16(1);
  const int64_t vectors = bytes / kBytes;
  __m256i total[R], total_by_4[R];
  for (int r = 0; r < R; ++r) total[r] = total_by_4[r] = _mm256_setzero_si256();
  for (int64_t i0 = 0; i0 < vectors; i0 += kVectorsPerSum) {
    const int64_t i1 = std::min(vectors, i0 + kVectorsPerSum);
    __m256i part[R], part_by_4[R];
#pragma GCC unroll 2
    for (int r = 0; r < R; ++r) part[r] = part_by_4[r] = _mm256_setzero_si256();
    for (int64_t i = i0; i < i1; ++i) {
      const auto* activations = reinterpret_cast<const __m256i*>(planes + 4 * kBytes * i);
#pragma GCC unroll 2
      for (int r = 0; r < R; ++r) {
        const __m256i codes =
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(w + r * bytes + kBytes * i));
        const __m256i upper = _mm256_srli_epi16(codes, 4);
        const __m256i q0 = _mm256_and_si256(codes, low_mask);
        const __m256i q1 = _mm256_and_si256(codes, high_mask);
        const __m256i q2 = _mm256_and_si256(upper, low_mask);
        const __m256i q3 = _mm256_and_si256(upper, high_mask);
        part[r] = _mm256_add_epi16(part[r], _mm256_maddubs_epi16(q0, activations[0]));
        part_by_4[r] = _mm256_add_epi16(part_by_4[r], _mm256_maddubs_epi16(q1, activations[1]));
        part[r] = _mm256_add_epi16(part[r], _mm256_maddubs_epi16(q2, activations[2]));
        part_by_4[r] = _mm256_add_epi16(part_by_4[r], _mm256_maddubs_epi16(q3, activations[3]));
      }
    }
#pragma GCC unroll 2
    for (int r = 0; r < R; ++r) {
      total[r] = _mm256_add_epi32(total[r], _mm256_madd_epi16(part[r], ones));
      total_by_4[r] = _mm256_add_epi32(total_by_4[r], _mm256_madd_epi16(part_by_4[r], ones));
    }
  }
  for (int r = 0; r < R; ++r) {
    sums[r] = HorizontalSum(_mm256_add_epi32(total[r], _mm256_srai_epi32(total_by_4[r], 2)));
  }
}

// Lays the activations out as SumRows reads them and returns their sum.
int32_t SplitPlanes(const int8_t* x, int64_t vectors, int8_t* planes) {
  const __m256i byte_order = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  const __m256i lane_order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const __m256i ones_8 = _mm256_set1_epi8(1);
  const __m256i ones_16 = _mm256_set1_epi16(1);
  __m256i total = _mm256_setzero_si256();
  for (int64_t i = 0; i < vectors; ++i, x += 4 * kBytes, planes += 4 * kBytes) {
    // v[g]: 8 bytes of each plane, for the packed bytes 8 g .. 8 g + 7.
    __m256i v[4];
#pragma GCC unroll 4
    for (int g = 0; g < 4; ++g) {
      const __m256i raw = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + kBytes * g));
      const __m256i pair_sums = _mm256_maddubs_epi16(ones_8, raw);
      total = _mm256_add_epi32(total, _mm256_madd_epi16(pair_sums, ones_16));
      v[g] = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(raw, byte_order), lane_order);
    }
    const __m256i even_01 = _mm256_unpacklo_epi64(v[0], v[1]);
    const __m256i odd_01 = _mm256_unpackhi_epi64(v[0], v[1]);
    const __m256i even_23 = _mm256_unpacklo_epi64(v[2], v[3]);
    const __m256i odd_23 = _mm256_unpackhi_epi64(v[2], v[3]);
    auto* out = reinterpret_cast<__m256i*>(planes);
    _mm256_store_si256(out, _mm256_permute2x128_si256(even_01, even_23, 0x20));
    _mm256_store_si256(out + 1, _mm256_permute2x128_si256(odd_01, odd_23, 0x20));
    _mm256_store_si256(out + 2, _mm256_permute2x128_si256(even_01, even_23, 0x31));
    _mm256_store_si256(out + 3, _mm256_permute2x128_si256(odd_01, odd_23, 0x31));
  }
  return HorizontalSum(total);
}

int32_t SumTail(const uint8_t* row, const int8_t* x, int64_t begin, int64_t end) {
  int32_t sum = 0;
  for (int64_t i = begin; i < end; ++i) {
    for (int t = 0; t < 4; ++t) sum += ((row[i] >> (2 * t)) & 3) * x[4 * i + t];
  }
  return sum;
}

}  // namespace

extern "C" void gemv_w2a8(const uint8_t* w_packed, const float* w_scale, const int8_t* x,
                          const float* x_scale, float* y, int64_t n, int64_t k) {
  thread_local std::vector<int8_t> plane_buffer;
  const int64_t bytes = k / 4;
  const int64_t vectors = bytes / kBytes;
  const size_t plane_bytes = static_cast<size_t>(4 * kBytes * vectors) + 31;
  if (plane_buffer.size() < plane_bytes) plane_buffer.resize(plane_bytes);
  const auto address = reinterpret_cast<uintptr_t>(plane_buffer.data());
  auto* planes = reinterpret_cast<int8_t*>((address + 31) & ~uintptr_t{31});
  int32_t x_sum = SplitPlanes(x, vectors, planes);
  for (int64_t p = 4 * kBytes * vectors; p < k; ++p) x_sum += x[p];

  int64_t j = 0;
  while (j < n) {
    const uint8_t* row = w_packed + j * bytes;
    int32_t sums[2];
    int64_t height = 1;
    if (n - j >= 2) {
      SumRows<2>(row, bytes, planes, sums);
      height = 2;
    } else {
      SumRows<1>(row, bytes, planes, sums);
    }
    for (int64_t r = 0; r < height; ++r, ++j) {
      const int32_t tail = SumTail(row + r * bytes, x, vectors * kBytes, bytes);
      y[j] = static_cast<float>(sums[r] + tail - x_sum) * w_scale[j] * x_scale[0];
    }
  }
}
