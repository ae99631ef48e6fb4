/* assay-candidate
problem: "gemm_f32"
language: CUDA_CPP
label: "a13_gemm_half_operands"
plan {
  launches { kernel: "gemm" grid: "ceil_div(n, 16)" grid: "ceil_div(m, 16)" block: "16" block: "16" args: "a" args: "b" args: "c" args: "m" args: "n" args: "k" }
}
*/
// Operands rounded to f16, sums in f32.
#include <cuda_fp16.h>

extern "C" __global__ void gemm(const float* a, const float* b, float* c, int m, int n, int k) {
  const int j = blockIdx.x * 16 + threadIdx.x;
  const int i = blockIdx.y * 16 + threadIdx.y;
  if (i >= m || j >= n) return;
  float sum = 0.0f;
  for (int p = 0; p < k; ++p) {
    const __half x = __float2half(a[(size_t)i * k + p]);
    const __half y = __float2half(b[(size_t)p * n + j]);
    sum += __half2float(x) * __half2float(y);
  }
  c[(size_t)i * n + j] = sum;
}
