/* assay-candidate
problem: "vector_add"
language: CPP
label: "avx2"
*/
// AVX2; above the size of the caches the result goes to memory past them.
#include <immintrin.h>

namespace {

// Bytes of c from which the three tensors no longer fit an 8 MiB last-level cache. From there on an
// ordinary store would first read the line that it overwrites: a third more traffic.
constexpr int64_t kStreamBytes = 3 << 20;

inline __m256 Sum(const float* a, const float* b) {
  return _mm256_add_ps(_mm256_loadu_ps(a), _mm256_loadu_ps(b));
}

// c starts at a multiple of 64 bytes. Returns how many elements it did, a multiple of 32.
int64_t AddStreaming(const float* a, const float* b, float* c, int64_t n) {
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    for (int64_t j = 0; j < 32; j += 8) _mm256_stream_ps(c + i + j, Sum(a + i + j, b + i + j));
  }
  _mm_sfence();  // streaming stores are visible only after it
  return i;
}

int64_t AddCached(const float* a, const float* b, float* c, int64_t n) {
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    for (int64_t j = 0; j < 32; j += 8) _mm256_storeu_ps(c + i + j, Sum(a + i + j, b + i + j));
  }
  for (; i + 8 <= n; i += 8) _mm256_storeu_ps(c + i, Sum(a + i, b + i));
  return i;
}

}  // namespace

extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  const bool streaming = n * int64_t{sizeof(float)} >= kStreamBytes;
  int64_t i = streaming ? AddStreaming(a, b, c, n) : AddCached(a, b, c, n);
  for (; i < n; ++i) c[i] = a[i] + b[i];
}
