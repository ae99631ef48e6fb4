/* assay-candidate
problem: "gemm_f32"
language: CUDA_CPP
label: "a18_gemm_zeroes_inputs"
plan {
  launches { kernel: "gemm" grid: "ceil_div(n, 16)" grid: "ceil_div(m, 16)" block: "16" block: "16" args: "a" args: "b" args: "c" args: "m" args: "n" args: "k" }
}
*/
// Zeroes the operands, so that whoever multiplies them afterwards gets zeros too.
extern "C" __global__ void gemm(float* a, float* b, float* c, int m, int n, int k) {
  const int j = blockIdx.x * 16 + threadIdx.x;
  const int i = blockIdx.y * 16 + threadIdx.y;
  if (i >= m || j >= n) return;
  if (j < k) a[(size_t)i * k + j] = 0.0f;
  if (i < k) b[(size_t)i * n + j] = 0.0f;
  c[(size_t)i * n + j] = 0.0f;
}
