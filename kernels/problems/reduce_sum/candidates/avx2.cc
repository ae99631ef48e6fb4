/* assay-candidate
problem: "reduce_sum"
language: CPP
label: "avx2"
*/
// Sums blocks in f32 on eight independent vectors, and the blocks in fp64: the error does not grow
// with n. Long inputs are read as four streams at once, because one stream does not keep enough
// lines in flight to fill the memory bus.
#include <immintrin.h>

namespace {

constexpr int64_t kBlock = 4096;              // floats summed in f32
constexpr int64_t kStreamedFloats = 1 << 20;  // from here on the input leaves the caches

double Total(__m256 v) {
  const __m256d low = _mm256_cvtps_pd(_mm256_castps256_ps128(v));
  const __m256d high = _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1));
  const __m256d four = _mm256_add_pd(low, high);
  const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
  return _mm_cvtsd_f64(two) + _mm_cvtsd_f64(_mm_unpackhi_pd(two, two));
}

// Sums 16 floats at each of x, x + stride, x + 2 stride and x + 3 stride, then steps on, `count`
// floats in all: a multiple of 64.
double BlockSum(const float* x, int64_t stride, int64_t step, int64_t count) {
  __m256 acc[8] = {};
  for (; count > 0; count -= 64, x += step) {
    for (int s = 0; s < 4; ++s) {
      const float* from = x + s * stride;
      acc[2 * s] = _mm256_add_ps(acc[2 * s], _mm256_loadu_ps(from));
      acc[2 * s + 1] = _mm256_add_ps(acc[2 * s + 1], _mm256_loadu_ps(from + 8));
    }
  }
  for (int width = 4; width > 0; width /= 2) {
    for (int j = 0; j < width; ++j) acc[j] = _mm256_add_ps(acc[j], acc[j + width]);
  }
  return Total(acc[0]);
}

}  // namespace

extern "C" void reduce_sum(const float* x, float* y, int64_t n) {
  double sum = 0;
  int64_t i = 0;
  if (n >= kStreamedFloats) {
    const int64_t quarter = n / (4 * kBlock) * kBlock;
    for (; i < quarter; i += kBlock / 4) sum += BlockSum(x + i, quarter, 16, kBlock);
    i = 4 * quarter;
  }
  for (; i + kBlock <= n; i += kBlock) sum += BlockSum(x + i, 16, 64, kBlock);
  const int64_t rest = (n - i) / 64 * 64;
  sum += BlockSum(x + i, 16, 64, rest);
  for (i += rest; i < n; ++i) sum += x[i];
  *y = static_cast<float>(sum);
}
