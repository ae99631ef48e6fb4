/* assay-candidate
problem: "gemm_f32"
language: CPP
label: "g21_gemm_openmp"
compile_options: "-fopenmp-simd"
*/
// Annotated for OpenMP. The contract is one thread, so the pool of the study's case is refused
// here; the annotations are not.
extern "C" void gemm_f32(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
#pragma omp parallel for
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) c[i * n + j] = 0;
    for (int64_t p = 0; p < k; ++p) {
      const float x = a[i * k + p];
#pragma omp simd
      for (int64_t j = 0; j < n; ++j) c[i * n + j] += x * b[p * n + j];
    }
  }
}
