/* assay-candidate
problem: "gemm_f16"
language: CPP
label: "narrow_result"
*/
// Wrong on purpose: the sums are right, but are rounded to f16 before they are stored.
#include <immintrin.h>

namespace {

float Widen(uint16_t half) { return _cvtsh_ss(half); }
float Narrow(float value) { return _cvtsh_ss(_cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT)); }

}  // namespace

extern "C" void gemm_f16(const uint16_t* a, const uint16_t* b, float* c, int64_t m, int64_t n,
                         int64_t k) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0.0f;
      for (int64_t p = 0; p < k; ++p) {
        sum += Widen(a[i * k + p]) * Widen(b[p * n + j]);
      }
      c[i * n + j] = Narrow(sum);
    }
  }
}
