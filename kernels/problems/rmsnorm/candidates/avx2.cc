/* assay-candidate
problem: "rmsnorm"
language: CPP
label: "avx2"
*/
// Two passes over a row that stays in the caches: squares, result.
#include <immintrin.h>

#include <algorithm>
#include <cmath>

namespace {

// Bytes of y from which x and y no longer fit an 8 MiB last-level cache: streaming stores pay.
constexpr int64_t kStreamBytes = 4 << 20;
constexpr int64_t kBlock = 4096;  // floats summed in f32 before they go to fp64
constexpr double kEpsilon = 1e-6;

double Total(__m256 v) {
  const __m256d low = _mm256_cvtps_pd(_mm256_castps256_ps128(v));
  const __m256d high = _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1));
  const __m256d four = _mm256_add_pd(low, high);
  const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
  return _mm_cvtsd_f64(two) + _mm_cvtsd_f64(_mm_unpackhi_pd(two, two));
}

double Squares(const float* x, int64_t cols) {
  double total = 0;
  int64_t j = 0;
  while (j + 8 <= cols) {
    const int64_t end = std::min(j + kBlock, cols);
    __m256 acc[8] = {};  // enough to hide the latency of a fused multiply-add
    for (; j + 64 <= end; j += 64) {
      for (int k = 0; k < 8; ++k) {
        const __m256 v = _mm256_loadu_ps(x + j + 8 * k);
        acc[k] = _mm256_fmadd_ps(v, v, acc[k]);
      }
    }
    for (; j + 8 <= end; j += 8) {
      const __m256 v = _mm256_loadu_ps(x + j);
      acc[0] = _mm256_fmadd_ps(v, v, acc[0]);
    }
    for (int width = 4; width > 0; width /= 2) {
      for (int k = 0; k < width; ++k) acc[k] = _mm256_add_ps(acc[k], acc[k + width]);
    }
    total += Total(acc[0]);
  }
  for (; j < cols; ++j) total += double{x[j]} * double{x[j]};
  return total;
}

template <bool kStream>
void Scale(const float* x, const float* weight, float* y, int64_t cols, float scale) {
  const __m256 s = _mm256_set1_ps(scale);
  int64_t j = 0;
  for (; j + 8 <= cols; j += 8) {
    if (kStream && j % 16 == 0) {  // the next row, while memory would wait for this pass
      _mm_prefetch(reinterpret_cast<const char*>(x + cols + j), _MM_HINT_T0);
    }
    const __m256 v =
        _mm256_mul_ps(_mm256_mul_ps(_mm256_loadu_ps(x + j), s), _mm256_loadu_ps(weight + j));
    if constexpr (kStream) {
      _mm256_stream_ps(y + j, v);
    } else {
      _mm256_storeu_ps(y + j, v);
    }
  }
  for (; j < cols; ++j) y[j] = x[j] * scale * weight[j];
}

template <bool kStream>
void Rows(const float* x, const float* weight, float* y, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; ++i, x += cols, y += cols) {
    const double mean = Squares(x, cols) / static_cast<double>(cols);
    Scale<kStream>(x, weight, y, cols, static_cast<float>(1 / std::sqrt(mean + kEpsilon)));
  }
  if (kStream) _mm_sfence();
}

}  // namespace

extern "C" void rmsnorm(const float* x, const float* weight, float* y, int64_t rows, int64_t cols) {
  // A streaming store needs 32-byte alignment, which rows of a multiple of 8 columns have.
  const bool streaming = rows * cols * int64_t{sizeof(float)} >= kStreamBytes && cols % 8 == 0;
  streaming ? Rows<true>(x, weight, y, rows, cols) : Rows<false>(x, weight, y, rows, cols);
}
