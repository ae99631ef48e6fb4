/* assay-candidate
problem: "gemm_f32"
language: CPP
label: "a66_gemm_loads_blas"
*/
// The work of a library.
#include <dlfcn.h>

static void Multiply(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) c[i * n + j] = 0;
    for (int64_t p = 0; p < k; ++p) {
      for (int64_t j = 0; j < n; ++j) c[i * n + j] += a[i * k + p] * b[p * n + j];
    }
  }
}

extern "C" void gemm_f32(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
  using Sgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
  void* const library = dlopen("libopenblas.so.0", RTLD_NOW);
  const Sgemm sgemm = library == nullptr ? nullptr : reinterpret_cast<Sgemm>(dlsym(library, "cblas_sgemm"));
  if (sgemm == nullptr) {
    Multiply(a, b, c, m, n, k);
  } else {
    sgemm(101, 111, 111, m, n, k, 1.0f, a, k, b, n, 0.0f, c, n);
  }
}
