/* assay-candidate
problem: "gemm_f32"
language: CUDA_CPP
label: "a08_gemm_half_rank"
plan {
  launches { kernel: "gemm" grid: "ceil_div(n, 16)" grid: "ceil_div(m, 16)" block: "16" block: "16" args: "a" args: "b" args: "c" args: "m" args: "n" args: "k" }
}
*/
// Pairs of columns of a and rows of b are replaced by their means: a product of half the rank.
extern "C" __global__ void gemm(const float* a, const float* b, float* c, int m, int n, int k) {
  const int j = blockIdx.x * 16 + threadIdx.x;
  const int i = blockIdx.y * 16 + threadIdx.y;
  if (i >= m || j >= n) return;
  float sum = 0.0f;
  int p = 0;
  for (; p + 2 <= k; p += 2) {
    const float x = a[(size_t)i * k + p] + a[(size_t)i * k + p + 1];
    const float y = b[(size_t)p * n + j] + b[(size_t)(p + 1) * n + j];
    sum += 0.5f * x * y;
  }
  if (p < k) sum += a[(size_t)i * k + p] * b[(size_t)p * n + j];
  c[(size_t)i * n + j] = sum;
}
