/* assay-candidate
problem: "gemm_f32"
language: CPP
label: "a62_gemm_eight_threads"
*/
// Eight threads where one is measured.
#include <thread>
#include <vector>

static void Multiply(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) c[i * n + j] = 0;
    for (int64_t p = 0; p < k; ++p) {
      for (int64_t j = 0; j < n; ++j) c[i * n + j] += a[i * k + p] * b[p * n + j];
    }
  }
}

extern "C" void gemm_f32(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 8; ++t) {
    const int64_t begin = m * t / 8;
    const int64_t end = m * (t + 1) / 8;
    threads.emplace_back([=] { Multiply(a + begin * k, b, c + begin * n, end - begin, n, k); });
  }
  for (std::thread& thread : threads) thread.join();
}
