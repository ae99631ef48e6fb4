/* assay-candidate
problem: "scan"
language: CPP
label: "scan_half"
# Expected: INCORRECT (MISMATCH). Rounds results to half precision.
*/
#include <immintrin.h>
extern "C" void scan(const float* x, float* y, int64_t n) {
  double s = 0;
  for (int64_t i = 0; i < n; ++i) {
    s += x[i];
    y[i] = _cvtsh_ss(_cvtss_sh(static_cast<float>(s), 0));
  }
}
