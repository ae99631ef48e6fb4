/* assay-candidate
problem: "scan"
language: CPP
label: "avx2"
*/
// Prefix sums of 32 elements in registers; one fp64 carry from block to block, so that the only
// dependence between blocks is one addition and the error does not grow with n.
#include <immintrin.h>

namespace {

// Bytes of y from which x and y no longer fit an 8 MiB last-level cache: streaming stores pay.
constexpr int64_t kStreamBytes = 4 << 20;

// Inclusive prefix sums of the eight elements of v. Moves between the halves are by extract and
// insert: permute2f128 takes eight micro-operations on first-generation Zen.
inline __m256 Prefix8(__m256 v) {
  v = _mm256_add_ps(v, _mm256_castsi256_ps(_mm256_slli_si256(_mm256_castps_si256(v), 4)));
  v = _mm256_add_ps(v, _mm256_castsi256_ps(_mm256_slli_si256(_mm256_castps_si256(v), 8)));
  // The sum of the lower four goes to the upper four.
  const __m128 low = _mm_permute_ps(_mm256_castps256_ps128(v), 0xff);
  return _mm256_add_ps(v, _mm256_insertf128_ps(_mm256_setzero_ps(), low, 1));
}

inline __m256 BroadcastLast(__m256 v) {
  const __m128 last = _mm_permute_ps(_mm256_extractf128_ps(v, 1), 0xff);
  return _mm256_set_m128(last, last);
}

template <bool kStream>
inline void Store(float* to, __m256 v) {
  if constexpr (kStream) {
    _mm256_stream_ps(to, v);
  } else {
    _mm256_storeu_ps(to, v);
  }
}

// y starts at a multiple of 64 bytes. Returns how many elements it did, a multiple of 32.
template <bool kStream>
int64_t Blocks(const float* x, float* y, int64_t n, double* sum) {
  __m256d carry = _mm256_setzero_pd();  // the same in all elements
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    const __m256 p0 = Prefix8(_mm256_loadu_ps(x + i));
    __m256 p1 = Prefix8(_mm256_loadu_ps(x + i + 8));
    __m256 p2 = Prefix8(_mm256_loadu_ps(x + i + 16));
    __m256 p3 = Prefix8(_mm256_loadu_ps(x + i + 24));
    p3 = _mm256_add_ps(p3, BroadcastLast(p2));
    p1 = _mm256_add_ps(p1, BroadcastLast(p0));
    const __m256 half = BroadcastLast(p1);
    p2 = _mm256_add_ps(p2, half);
    p3 = _mm256_add_ps(p3, half);
    const __m128 narrow = _mm256_cvtpd_ps(carry);
    const __m256 offset = _mm256_set_m128(narrow, narrow);
    Store<kStream>(y + i, _mm256_add_ps(p0, offset));
    Store<kStream>(y + i + 8, _mm256_add_ps(p1, offset));
    Store<kStream>(y + i + 16, _mm256_add_ps(p2, offset));
    Store<kStream>(y + i + 24, _mm256_add_ps(p3, offset));
    const __m128 last = _mm_permute_ps(_mm256_extractf128_ps(p3, 1), 0xff);
    carry = _mm256_add_pd(carry, _mm256_cvtps_pd(last));
  }
  if (kStream) _mm_sfence();
  *sum = _mm256_cvtsd_f64(carry);
  return i;
}

}  // namespace

extern "C" void scan(const float* x, float* y, int64_t n) {
  double sum = 0;
  const bool streaming = n * int64_t{sizeof(float)} >= kStreamBytes;
  int64_t i = streaming ? Blocks<true>(x, y, n, &sum) : Blocks<false>(x, y, n, &sum);
  for (; i < n; ++i) {
    sum += x[i];
    y[i] = static_cast<float>(sum);
  }
}
