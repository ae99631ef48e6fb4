/* assay-candidate
problem: "gelu"
language: CPP
label: "avx2"
*/
// gelu(x) = max(x, 0) - t N(-t) with t = |x| and N the normal distribution function. log2 N(-t) is
// close to a parabola, so that one polynomial and one 2^p replace erf, without a branch, and the
// tail keeps its size instead of cancelling.
#include <immintrin.h>

#include <algorithm>

namespace {

// Bytes of y from which x and y no longer fit an 8 MiB last-level cache: streaming stores pay.
constexpr int64_t kStreamBytes = 4 << 20;
// Beyond it t N(-t) is below 1e-14.
constexpr float kTailEnd = 8.0f;

// Four independent vectors: each step is done for all of them, which hides its latency.
constexpr int kLanes = 4;

// log2 N(-t) on [0, 8], highest power first: minimax for the error of t N(-t), which is below 4e-8,
// and exact at 0.
constexpr float kLog2Tail[] = {
    2.270039828e-07f, -5.351841560e-06f, 4.957380130e-05f,  -2.028852382e-04f, -1.354030648e-04f,
    7.092773808e-03f, -5.253194897e-02f, -4.591922473e-01f, -1.151107515e+00f, -1.0f};
// 2^f on [-1/2, 1/2], within 1e-7, exact at 0.
constexpr float kExp2[] = {1.326472390e-03f, 9.671512870e-03f, 5.550733754e-02f,
                           2.402224208e-01f, 6.931469776e-01f, 1.0f};

// out = polynomial of x.
template <int kCount>
inline void Polynomial(const float (&coefficients)[kCount], const __m256 (&x)[kLanes],
                       __m256 (&out)[kLanes]) {
  for (auto& o : out) o = _mm256_set1_ps(coefficients[0]);
  for (int c = 1; c < kCount; ++c) {
    const __m256 next = _mm256_set1_ps(coefficients[c]);
    for (int k = 0; k < kLanes; ++k) out[k] = _mm256_fmadd_ps(out[k], x[k], next);
  }
}

// x = 2^x for -126 <= x <= 0.
inline void Exp2(__m256 (&x)[kLanes]) {
  __m256 whole[kLanes], e[kLanes];
  for (int k = 0; k < kLanes; ++k) {
    whole[k] = _mm256_round_ps(x[k], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    x[k] = _mm256_sub_ps(x[k], whole[k]);
  }
  Polynomial(kExp2, x, e);
  for (int k = 0; k < kLanes; ++k) {
    const __m256i exponent = _mm256_slli_epi32(_mm256_cvtps_epi32(whole[k]), 23);
    x[k] = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(e[k]), exponent));
  }
}

// 32 elements. y starts at a multiple of 32 bytes when kStream is set.
template <bool kStream>
inline void Gelu32(const float* x, float* y) {
  const __m256 sign = _mm256_set1_ps(-0.0f), end = _mm256_set1_ps(kTailEnd);
  __m256 t[kLanes], p[kLanes];
  for (int k = 0; k < kLanes; ++k) {
    t[k] = _mm256_min_ps(_mm256_andnot_ps(sign, _mm256_loadu_ps(x + 8 * k)), end);
  }
  Polynomial(kLog2Tail, t, p);
  Exp2(p);
  for (int k = 0; k < kLanes; ++k) {
    const __m256 positive = _mm256_max_ps(_mm256_loadu_ps(x + 8 * k), _mm256_setzero_ps());
    const __m256 v = _mm256_fnmadd_ps(t[k], p[k], positive);
    if constexpr (kStream) {
      _mm256_stream_ps(y + 8 * k, v);
    } else {
      _mm256_storeu_ps(y + 8 * k, v);
    }
  }
}

}  // namespace

extern "C" void gelu(const float* x, float* y, int64_t n) {
  const bool streaming = n * int64_t{sizeof(float)} >= kStreamBytes;
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) streaming ? Gelu32<true>(x + i, y + i) : Gelu32<false>(x + i, y + i);
  if (streaming) _mm_sfence();
  if (i < n) {
    float rest[32] = {};
    std::copy(x + i, x + n, rest);
    Gelu32<false>(rest, rest);
    std::copy(rest, rest + (n - i), y + i);
  }
}
