/* assay-candidate
problem: "gemm_f16"
language: CUDA_CPP
label: "a14_gemm_half_sums"
plan {
  launches { kernel: "gemm" grid: "ceil_div(n, 16)" grid: "ceil_div(m, 16)" block: "16" block: "16" args: "a" args: "b" args: "c" args: "m" args: "n" args: "k" }
}
*/
// Sums kept in f16 along a long k.
#include <cuda_fp16.h>

extern "C" __global__ void gemm(const __half* a, const __half* b, float* c, int m, int n, int k) {
  const int j = blockIdx.x * 16 + threadIdx.x;
  const int i = blockIdx.y * 16 + threadIdx.y;
  if (i >= m || j >= n) return;
  __half sum = __float2half(0.0f);
  for (int p = 0; p < k; ++p) sum = __hfma(a[(size_t)i * k + p], b[(size_t)p * n + j], sum);
  c[(size_t)i * n + j] = __half2float(sum);
}
