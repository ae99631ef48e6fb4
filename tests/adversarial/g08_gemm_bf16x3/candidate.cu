/* assay-candidate
problem: "gemm_f32"
language: CUDA_CPP
label: "g08_gemm_bf16x3"
plan {
  launches { kernel: "gemm" grid: "ceil_div(n, 16)" grid: "ceil_div(m, 16)" block: "16" block: "16" args: "a" args: "b" args: "c" args: "m" args: "n" args: "k" }
}
*/
// Each operand as the sum of three bf16, six products of parts: the precision of f32.
#include <cuda_bf16.h>

struct Parts {
  float high, middle, low;
};

__device__ Parts Split(float v) {
  Parts parts;
  parts.high = __bfloat162float(__float2bfloat16(v));
  parts.middle = __bfloat162float(__float2bfloat16(v - parts.high));
  parts.low = __bfloat162float(__float2bfloat16(v - parts.high - parts.middle));
  return parts;
}

extern "C" __global__ void gemm(const float* a, const float* b, float* c, int m, int n, int k) {
  const int j = blockIdx.x * 16 + threadIdx.x;
  const int i = blockIdx.y * 16 + threadIdx.y;
  if (i >= m || j >= n) return;
  float sum = 0.0f;
  for (int p = 0; p < k; ++p) {
    const Parts x = Split(a[(size_t)i * k + p]);
    const Parts y = Split(b[(size_t)p * n + j]);
    sum += x.high * y.low + x.low * y.high + x.middle * y.middle + x.high * y.middle + x.middle * y.high + x.high * y.high;
  }
  c[(size_t)i * n + j] = sum;
}
