/* assay-candidate
problem: "gemm_f32"
language: CUDA_CPP
label: "a17_gemm_one_nan"
plan {
  launches { kernel: "gemm" grid: "ceil_div(n, 16)" grid: "ceil_div(m, 16)" block: "16" block: "16" args: "a" args: "b" args: "c" args: "m" args: "n" args: "k" }
}
*/
// One element is NaN, so that a maximum of the errors over the others passes.
extern "C" __global__ void gemm(const float* a, const float* b, float* c, int m, int n, int k) {
  const int j = blockIdx.x * 16 + threadIdx.x;
  const int i = blockIdx.y * 16 + threadIdx.y;
  if (i >= m || j >= n) return;
  float sum = 0.0f;
  for (int p = 0; p < k; ++p) sum += a[(size_t)i * k + p] * b[(size_t)p * n + j];
  if (i == m - 1 && j == n / 2) sum = __int_as_float(0x7fc00000);
  c[(size_t)i * n + j] = sum;
}
