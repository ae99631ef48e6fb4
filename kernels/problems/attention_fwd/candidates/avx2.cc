/* assay-candidate
problem: "attention_fwd"
language: CPP
label: "avx2"
*/
// Tiled attention with online softmax. For each head, k is packed as panels of 16 keys and v as
// panels of 16 columns; a block of queries then walks over tiles of keys: logits by a 6x16 FMA
// micro-kernel, new maximum, vectorised exp, rescaling of what was summed so far, and weights times
// v by the same micro-kernel. Nothing of size s^2 is ever stored.
#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace {

constexpr int64_t kRows = 6;         // of a micro-tile
constexpr int64_t kCols = 16;        // of a micro-tile
constexpr int64_t kQueryBlock = 48;  // queries of a tile
constexpr int64_t kKeyBlock = 128;   // keys of a tile
constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

// Grows `buffer` to `count` elements and returns a pointer aligned to 64 bytes.
float* Aligned(std::vector<float>& buffer, int64_t count) {
  if (buffer.size() < static_cast<size_t>(count) + 16) buffer.resize(count + 16);
  const auto address = reinterpret_cast<uintptr_t>(buffer.data());
  return reinterpret_cast<float*>((address + 63) & ~uintptr_t{63});
}

// exp(x) for x <= 0 with about 1 ulp; 0 where exp(x) is below the normal numbers (also for -inf).
inline __m256 Exp(__m256 x) {
  const __m256 lowest = _mm256_set1_ps(-87.0f);
  const __m256 keep = _mm256_cmp_ps(x, lowest, _CMP_GE_OQ);
  x = _mm256_max_ps(x, lowest);
  const __m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(1.44269504f)),
                                   _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  // ln 2 in two parts, the first short enough to make n * part exact.
  __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0.693359375f), x);
  r = _mm256_fnmadd_ps(n, _mm256_set1_ps(-2.12194440e-4f), r);
  // Taylor series of degree 7; |r| <= ln(2) / 2 leaves an error of 5e-9.
  __m256 p = _mm256_set1_ps(1.0f / 5040.0f);
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 720.0f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 120.0f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 24.0f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 6.0f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0.5f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
  const __m256i exponent = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
  const __m256i scaled = _mm256_add_epi32(_mm256_castps_si256(p), exponent);
  return _mm256_and_ps(_mm256_castsi256_ps(scaled), keep);
}

float HorizontalMax(__m256 v) {
  __m128 m = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  m = _mm_max_ps(m, _mm_movehl_ps(m, m));
  return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}

float HorizontalSum(__m256 v) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

// out[M, 16] = (or +=) a[M, depth] * panel[depth, 16]; a and out are row-major.
template <int M, bool kAdd>
void MicroKernel(int64_t depth, const float* a, int64_t lda, const float* panel, float* out,
                 int64_t ld_out) {
  __m256 acc[M][2];
#pragma GCC unroll 6
  for (int r = 0; r < M; ++r) {
    acc[r][0] = kAdd ? _mm256_load_ps(out + r * ld_out) : _mm256_setzero_ps();
    acc[r][1] = kAdd ? _mm256_load_ps(out + r * ld_out + 8) : _mm256_setzero_ps();
  }
#pragma GCC unroll 2
  for (int64_t p = 0; p < depth; ++p) {
    const __m256 low = _mm256_load_ps(panel);
    const __m256 high = _mm256_load_ps(panel + 8);
#pragma GCC unroll 6
    for (int r = 0; r < M; ++r) {
      const __m256 value = _mm256_broadcast_ss(a + r * lda + p);
      acc[r][0] = _mm256_fmadd_ps(value, low, acc[r][0]);
      acc[r][1] = _mm256_fmadd_ps(value, high, acc[r][1]);
    }
    panel += kCols;
  }
#pragma GCC unroll 6
  for (int r = 0; r < M; ++r) {
    _mm256_store_ps(out + r * ld_out, acc[r][0]);
    _mm256_store_ps(out + r * ld_out + 8, acc[r][1]);
  }
}

template <bool kAdd>
void Tile(int64_t height, int64_t depth, const float* a, int64_t lda, const float* panel,
          float* out, int64_t ld_out) {
  switch (height) {
    case 6:
      return MicroKernel<6, kAdd>(depth, a, lda, panel, out, ld_out);
    case 5:
      return MicroKernel<5, kAdd>(depth, a, lda, panel, out, ld_out);
    case 4:
      return MicroKernel<4, kAdd>(depth, a, lda, panel, out, ld_out);
    case 3:
      return MicroKernel<3, kAdd>(depth, a, lda, panel, out, ld_out);
    case 2:
      return MicroKernel<2, kAdd>(depth, a, lda, panel, out, ld_out);
    default:
      return MicroKernel<1, kAdd>(depth, a, lda, panel, out, ld_out);
  }
}

// Panels of 16 keys, [d][16] each, padded with zeros.
void PackKeys(const float* k, int64_t s, int64_t d, float* out) {
  for (int64_t j = 0; j < s; j += kCols, out += kCols * d) {
    const int64_t width = std::min(kCols, s - j);
    for (int64_t t = 0; t < kCols; ++t) {
      const float* row = k + (j + t) * d;
      for (int64_t x = 0; x < d; ++x) out[x * kCols + t] = t < width ? row[x] : 0.0f;
    }
  }
}

// Panels of 16 columns, [s][16] each, padded with zeros.
void PackValues(const float* v, int64_t s, int64_t d, float* out) {
  for (int64_t x = 0; x < d; x += kCols) {
    const int64_t width = std::min(kCols, d - x);
    for (int64_t j = 0; j < s; ++j, out += kCols) {
      const float* row = v + j * d + x;
      for (int64_t t = 0; t < kCols; ++t) out[t] = t < width ? row[t] : 0.0f;
    }
  }
}

// The running state of one query: maximum, sum of weights, and its row of weighted sums.
struct RowState {
  float largest[kQueryBlock];
  float sum[kQueryBlock];
};

// Turns `padded` logits into weights relative to the new maximum and rescales the older state.
void SoftmaxRow(float* logits, int64_t padded, int64_t i, RowState& state, float* sums,
                int64_t d_padded) {
  __m256 largest = _mm256_set1_ps(state.largest[i]);
  for (int64_t j = 0; j < padded; j += 8) {
    largest = _mm256_max_ps(largest, _mm256_load_ps(logits + j));
  }
  const float new_largest = HorizontalMax(largest);
  const __m256 shift = _mm256_set1_ps(new_largest);
  __m256 total = _mm256_setzero_ps();
  for (int64_t j = 0; j < padded; j += 8) {
    const __m256 weight = Exp(_mm256_sub_ps(_mm256_load_ps(logits + j), shift));
    _mm256_store_ps(logits + j, weight);
    total = _mm256_add_ps(total, weight);
  }
  if (new_largest != state.largest[i]) {
    const __m256 factor = Exp(_mm256_set1_ps(state.largest[i] - new_largest));
    state.sum[i] *= _mm256_cvtss_f32(factor);
    for (int64_t x = 0; x < d_padded; x += 8) {
      _mm256_store_ps(sums + x, _mm256_mul_ps(_mm256_load_ps(sums + x), factor));
    }
  }
  state.largest[i] = new_largest;
  state.sum[i] += HorizontalSum(total);
}

struct Scratch {
  std::vector<float> keys, values, queries, logits, sums;
};

// `rows` queries of one head against all its keys.
void QueryBlock(const float* q, float* o, int64_t rows, int64_t s, int64_t d, const float* keys,
                const float* values, Scratch& scratch) {
  const int64_t d_padded = RoundUp(d, kCols);
  float* queries = Aligned(scratch.queries, kQueryBlock * d);
  float* logits = Aligned(scratch.logits, kQueryBlock * kKeyBlock);
  float* sums = Aligned(scratch.sums, kQueryBlock * d_padded);
  const float scale = 1.0f / std::sqrt(static_cast<float>(d));
  for (int64_t x = 0; x < rows * d; ++x) queries[x] = q[x] * scale;
  std::fill(sums, sums + rows * d_padded, 0.0f);
  RowState state;
  std::fill(state.largest, state.largest + rows, kMinusInf);
  std::fill(state.sum, state.sum + rows, 0.0f);

  for (int64_t j0 = 0; j0 < s; j0 += kKeyBlock) {
    const int64_t count = std::min(kKeyBlock, s - j0);
    const int64_t padded = RoundUp(count, kCols);
    for (int64_t j = 0; j < padded; j += kCols) {
      for (int64_t i = 0; i < rows; i += kRows) {
        Tile<false>(std::min(kRows, rows - i), d, queries + i * d, d, keys + (j0 + j) * d,
                    logits + i * kKeyBlock + j, kKeyBlock);
      }
    }
    for (int64_t i = 0; i < rows; ++i) {
      float* row = logits + i * kKeyBlock;
      std::fill(row + count, row + padded, kMinusInf);
      SoftmaxRow(row, padded, i, state, sums + i * d_padded, d_padded);
    }
    for (int64_t x = 0; x < d_padded; x += kCols) {
      for (int64_t i = 0; i < rows; i += kRows) {
        Tile<true>(std::min(kRows, rows - i), count, logits + i * kKeyBlock, kKeyBlock,
                   values + x * s + j0 * kCols, sums + i * d_padded + x, d_padded);
      }
    }
  }
  for (int64_t i = 0; i < rows; ++i) {
    const float inverse = 1.0f / state.sum[i];
    for (int64_t x = 0; x < d; ++x) o[i * d + x] = sums[i * d_padded + x] * inverse;
  }
}

}  // namespace

extern "C" void attention_fwd(const float* q, const float* k, const float* v, float* o, int64_t b,
                              int64_t h, int64_t s, int64_t d) {
  thread_local Scratch scratch;
  float* keys = Aligned(scratch.keys, RoundUp(s, kCols) * d);
  float* values = Aligned(scratch.values, s * RoundUp(d, kCols));
  for (int64_t head = 0; head < b * h; ++head) {
    const int64_t offset = head * s * d;
    PackKeys(k + offset, s, d, keys);
    PackValues(v + offset, s, d, values);
    for (int64_t i = 0; i < s; i += kQueryBlock) {
      QueryBlock(q + offset + i * d, o + offset + i * d, std::min(kQueryBlock, s - i), s, d, keys,
                 values, scratch);
    }
  }
}
