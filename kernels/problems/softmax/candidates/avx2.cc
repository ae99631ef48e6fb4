/* assay-candidate
problem: "softmax"
language: CPP
label: "avx2"
*/
// Three passes over a row that stays in the caches: maximum, exponentials and their sum, scaling.
// Short rows keep the exponentials in a scratch row, so that memory sees each result once; the next
// row is fetched while this one is computed.
#include <immintrin.h>

#include <algorithm>
#include <limits>

namespace {

// Bytes of y from which x and y no longer fit an 8 MiB last-level cache: streaming stores pay.
constexpr int64_t kStreamBytes = 4 << 20;
constexpr int64_t kScratch = 4096;   // floats; half of a small L1
constexpr int64_t kSumBlock = 4096;  // floats summed in f32 before they go to fp64
constexpr float kLog2E = 1.44269504f;
// Below it exp is 0: less than 2^-126 beside the 1 of the maximum.
constexpr float kExpLowest = -87.3f;

// Four independent vectors: each step is done for all of them, which hides its latency.
constexpr int kLanes = 4;
// 2^f on [-1/2, 1/2], highest power first, within 1e-7.
constexpr float kExp2[] = {1.326472390e-03f, 9.671512870e-03f, 5.550733754e-02f,
                           2.402224208e-01f, 6.931469776e-01f, 1.0f};

// d = exp(d) for d <= 0, within 3e-7 of its size.
inline void Exp(__m256 (&d)[kLanes]) {
  const __m256 log2e = _mm256_set1_ps(kLog2E), lowest = _mm256_set1_ps(kExpLowest);
  __m256 alive[kLanes], whole[kLanes], e[kLanes];
  for (int k = 0; k < kLanes; ++k) {
    alive[k] = _mm256_cmp_ps(d[k], lowest, _CMP_GE_OQ);
    d[k] = _mm256_max_ps(d[k], lowest);
    whole[k] =
        _mm256_round_ps(_mm256_mul_ps(d[k], log2e), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    d[k] = _mm256_fmsub_ps(d[k], log2e, whole[k]);  // fused: without the product's error
    e[k] = _mm256_set1_ps(kExp2[0]);
  }
  for (int c = 1; c < 6; ++c) {
    const __m256 next = _mm256_set1_ps(kExp2[c]);
    for (int k = 0; k < kLanes; ++k) e[k] = _mm256_fmadd_ps(e[k], d[k], next);
  }
  for (int k = 0; k < kLanes; ++k) {
    const __m256i exponent = _mm256_slli_epi32(_mm256_cvtps_epi32(whole[k]), 23);
    e[k] = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(e[k]), exponent));
    d[k] = _mm256_and_ps(e[k], alive[k]);
  }
}

float Max(__m256 v) {
  __m128 m = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  m = _mm_max_ps(m, _mm_movehl_ps(m, m));
  return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}

float Sum(__m256 v) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

float RowMax(const float* x, int64_t cols) {
  if (cols < 8) return *std::max_element(x, x + cols);
  __m256 m0 = _mm256_loadu_ps(x);
  __m256 m1 = m0, m2 = m0, m3 = m0;
  int64_t j = 0;
  for (; j + 32 <= cols; j += 32) {
    m0 = _mm256_max_ps(m0, _mm256_loadu_ps(x + j));
    m1 = _mm256_max_ps(m1, _mm256_loadu_ps(x + j + 8));
    m2 = _mm256_max_ps(m2, _mm256_loadu_ps(x + j + 16));
    m3 = _mm256_max_ps(m3, _mm256_loadu_ps(x + j + 24));
  }
  for (; j + 8 <= cols; j += 8) m0 = _mm256_max_ps(m0, _mm256_loadu_ps(x + j));
  m0 = _mm256_max_ps(m0, _mm256_loadu_ps(x + cols - 8));  // overlaps, which a maximum allows
  return Max(_mm256_max_ps(_mm256_max_ps(m0, m1), _mm256_max_ps(m2, m3)));
}

// e = exp(x - peak); returns the sum. Prefetches `ahead`, as long as x.
float ExpSum(const float* x, float* e, int64_t cols, float peak, const float* ahead) {
  const __m256 p = _mm256_set1_ps(peak);
  __m256 s[kLanes] = {};
  int64_t j = 0;
  for (; j + 32 <= cols; j += 32) {
    _mm_prefetch(reinterpret_cast<const char*>(ahead + j), _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(ahead + j + 16), _MM_HINT_T0);
    __m256 v[kLanes];
    for (int k = 0; k < kLanes; ++k) v[k] = _mm256_sub_ps(_mm256_loadu_ps(x + j + 8 * k), p);
    Exp(v);
    for (int k = 0; k < kLanes; ++k) {
      _mm256_storeu_ps(e + j + 8 * k, v[k]);
      s[k] = _mm256_add_ps(s[k], v[k]);
    }
  }
  if (j < cols) {
    float rest[32];
    std::fill(std::copy(x + j, x + cols, rest), rest + 32, -std::numeric_limits<float>::infinity());
    __m256 v[kLanes];
    for (int k = 0; k < kLanes; ++k) v[k] = _mm256_sub_ps(_mm256_loadu_ps(rest + 8 * k), p);
    Exp(v);  // 0 where the row has ended
    for (int k = 0; k < kLanes; ++k) {
      _mm256_storeu_ps(rest + 8 * k, v[k]);
      s[k] = _mm256_add_ps(s[k], v[k]);
    }
    std::copy(rest, rest + (cols - j), e + j);
  }
  return Sum(_mm256_add_ps(_mm256_add_ps(s[0], s[1]), _mm256_add_ps(s[2], s[3])));
}

template <bool kStream>
void Scale(const float* e, float* y, int64_t cols, float factor) {
  const __m256 f = _mm256_set1_ps(factor);
  int64_t j = 0;
  for (; j + 8 <= cols; j += 8) {
    const __m256 v = _mm256_mul_ps(_mm256_loadu_ps(e + j), f);
    if constexpr (kStream) {
      _mm256_stream_ps(y + j, v);
    } else {
      _mm256_storeu_ps(y + j, v);
    }
  }
  for (; j < cols; ++j) y[j] = e[j] * factor;
}

template <bool kStream>
void Rows(const float* x, float* y, int64_t rows, int64_t cols) {
  alignas(64) float scratch[kScratch];
  for (int64_t i = 0; i < rows; ++i, x += cols, y += cols) {
    const float peak = RowMax(x, cols);
    float* e = kStream ? scratch : y;
    double sum = 0;
    for (int64_t j = 0; j < cols; j += kSumBlock) {
      sum += ExpSum(x + j, e + j, std::min(kSumBlock, cols - j), peak, x + cols + j);
    }
    Scale<kStream>(e, y, cols, static_cast<float>(1 / sum));
  }
  if (kStream) _mm_sfence();
}

}  // namespace

extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t cols) {
  // A streaming store needs 32-byte alignment, which rows of a multiple of 8 columns have.
  const bool streaming =
      rows * cols * int64_t{sizeof(float)} >= kStreamBytes && cols <= kScratch && cols % 8 == 0;
  streaming ? Rows<true>(x, y, rows, cols) : Rows<false>(x, y, rows, cols);
}
