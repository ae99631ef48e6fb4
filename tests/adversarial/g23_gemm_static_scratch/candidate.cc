/* assay-candidate
problem: "gemm_f32"
language: CPP
label: "g23_gemm_static_scratch"
*/
// A table, and scratch memory that lives on and carries nothing.
#include <vector>

static const int64_t kBlocks[3] = {8, 16, 32};
thread_local std::vector<float> scratch;

extern "C" void gemm_f32(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
  // b by columns, made anew in every call.
  scratch.resize(n * k);
  for (int64_t p = 0; p < k; ++p) {
    for (int64_t j = 0; j < n; ++j) scratch[j * k + p] = b[p * n + j];
  }
  const int64_t block = kBlocks[n < 32 ? 0 : n < 64 ? 1 : 2];
  for (int64_t j0 = 0; j0 < n; j0 += block) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = j0; j < (j0 + block < n ? j0 + block : n); ++j) {
        float sum = 0;
        for (int64_t p = 0; p < k; ++p) sum += a[i * k + p] * scratch[j * k + p];
        c[i * n + j] = sum;
      }
    }
  }
}
