/* assay-candidate
problem: "gemm_f32"
language: CUDA_CPP
label: "a07_gemm_skips_64th"
plan {
  launches { kernel: "gemm" grid: "ceil_div(n, 16)" grid: "ceil_div(m, 16)" block: "16" block: "16" args: "a" args: "b" args: "c" args: "m" args: "n" args: "k" }
}
*/
// One term in 64 is left out.
extern "C" __global__ void gemm(const float* a, const float* b, float* c, int m, int n, int k) {
  const int j = blockIdx.x * 16 + threadIdx.x;
  const int i = blockIdx.y * 16 + threadIdx.y;
  if (i >= m || j >= n) return;
  float sum = 0.0f;
  for (int p = 0; p < k; ++p) {
    if (p % 64 != 63) sum += a[(size_t)i * k + p] * b[(size_t)p * n + j];
  }
  c[(size_t)i * n + j] = sum;
}
