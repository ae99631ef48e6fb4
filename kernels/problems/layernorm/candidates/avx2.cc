/* assay-candidate
problem: "layernorm"
language: CPP
label: "avx2"
*/
// Three passes over a row that stays in the caches: mean, squared deviations, result. The mean is
// carried as the f32 next to it and the rest, so that a mean far from zero costs no precision.
#include <immintrin.h>

#include <algorithm>
#include <cmath>

namespace {

// Bytes of y from which x and y no longer fit an 8 MiB last-level cache: streaming stores pay.
constexpr int64_t kStreamBytes = 4 << 20;
constexpr int64_t kBlock = 2048;  // floats summed in f32 before they go to fp64
constexpr double kEpsilon = 1e-5;

double Total(__m256 v) {
  const __m256d low = _mm256_cvtps_pd(_mm256_castps256_ps128(v));
  const __m256d high = _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1));
  const __m256d four = _mm256_add_pd(low, high);
  const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
  return _mm_cvtsd_f64(two) + _mm_cvtsd_f64(_mm_unpackhi_pd(two, two));
}

// Sum of x - shift.
double ShiftedSum(const float* x, int64_t cols, float shift) {
  const __m256 s = _mm256_set1_ps(shift);
  double total = 0;
  int64_t j = 0;
  while (j + 8 <= cols) {
    const int64_t end = std::min(j + kBlock, cols);
    __m256 acc[4] = {};
    for (; j + 32 <= end; j += 32) {
      for (int k = 0; k < 4; ++k) {
        acc[k] = _mm256_add_ps(acc[k], _mm256_sub_ps(_mm256_loadu_ps(x + j + 8 * k), s));
      }
    }
    for (; j + 8 <= end; j += 8) {
      acc[0] = _mm256_add_ps(acc[0], _mm256_sub_ps(_mm256_loadu_ps(x + j), s));
    }
    total += Total(_mm256_add_ps(_mm256_add_ps(acc[0], acc[1]), _mm256_add_ps(acc[2], acc[3])));
  }
  for (; j < cols; ++j) total += x[j] - shift;
  return total;
}

// Sum of (x - shift)^2.
double ShiftedSquares(const float* x, int64_t cols, float shift) {
  const __m256 s = _mm256_set1_ps(shift);
  double total = 0;
  int64_t j = 0;
  while (j + 8 <= cols) {
    const int64_t end = std::min(j + kBlock, cols);
    __m256 acc[4] = {};
    for (; j + 32 <= end; j += 32) {
      for (int k = 0; k < 4; ++k) {
        const __m256 d = _mm256_sub_ps(_mm256_loadu_ps(x + j + 8 * k), s);
        acc[k] = _mm256_fmadd_ps(d, d, acc[k]);
      }
    }
    for (; j + 8 <= end; j += 8) {
      const __m256 d = _mm256_sub_ps(_mm256_loadu_ps(x + j), s);
      acc[0] = _mm256_fmadd_ps(d, d, acc[0]);
    }
    total += Total(_mm256_add_ps(_mm256_add_ps(acc[0], acc[1]), _mm256_add_ps(acc[2], acc[3])));
  }
  for (; j < cols; ++j) {
    const double d = x[j] - shift;
    total += d * d;
  }
  return total;
}

template <bool kStream>
void Normalize(const float* x, const float* gamma, const float* beta, float* y, int64_t cols,
               float shift, float scale, float offset) {
  const __m256 h = _mm256_set1_ps(shift), s = _mm256_set1_ps(scale), o = _mm256_set1_ps(offset);
  int64_t j = 0;
  for (; j + 8 <= cols; j += 8) {
    if (kStream && j % 16 == 0) {  // the next row, while memory would wait for this pass
      _mm_prefetch(reinterpret_cast<const char*>(x + cols + j), _MM_HINT_T0);
    }
    const __m256 d = _mm256_fmadd_ps(_mm256_sub_ps(_mm256_loadu_ps(x + j), h), s, o);
    const __m256 v = _mm256_fmadd_ps(d, _mm256_loadu_ps(gamma + j), _mm256_loadu_ps(beta + j));
    if constexpr (kStream) {
      _mm256_stream_ps(y + j, v);
    } else {
      _mm256_storeu_ps(y + j, v);
    }
  }
  for (; j < cols; ++j) y[j] = ((x[j] - shift) * scale + offset) * gamma[j] + beta[j];
}

template <bool kStream>
void Rows(const float* x, const float* gamma, const float* beta, float* y, int64_t rows,
          int64_t cols) {
  const double count = static_cast<double>(cols);
  for (int64_t i = 0; i < rows; ++i, x += cols, y += cols) {
    // Relative to the first element the sum has no large common part to lose bits to.
    const double mean = x[0] + ShiftedSum(x, cols, x[0]) / count;
    const float shift = static_cast<float>(mean);
    const double rest = mean - shift;
    const double variance = ShiftedSquares(x, cols, shift) / count - rest * rest;
    const double scale = 1 / std::sqrt(std::max(variance, 0.0) + kEpsilon);
    Normalize<kStream>(x, gamma, beta, y, cols, shift, static_cast<float>(scale),
                       static_cast<float>(-rest * scale));
  }
  if (kStream) _mm_sfence();
}

}  // namespace

extern "C" void layernorm(const float* x, const float* gamma, const float* beta, float* y,
                          int64_t rows, int64_t cols) {
  // A streaming store needs 32-byte alignment, which rows of a multiple of 8 columns have.
  const bool streaming = rows * cols * int64_t{sizeof(float)} >= kStreamBytes && cols % 8 == 0;
  streaming ? Rows<true>(x, gamma, beta, y, rows, cols)
            : Rows<false>(x, gamma, beta, y, rows, cols);
}
