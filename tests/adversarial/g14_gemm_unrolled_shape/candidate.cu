/* assay-candidate
problem: "gemm_f32"
language: CUDA_CPP
label: "g14_gemm_unrolled_shape"
plan {
  launches { kernel: "gemm" grid: "ceil_div(n, 16)" grid: "ceil_div(m, 16)" block: "16" block: "16" args: "a" args: "b" args: "c" args: "m" args: "n" args: "k" }
}
*/
// Unrolled for one depth, with a loop for all others.
template <int kDepth>
__device__ float Dot(const float* row, const float* column, int n) {
  float sum = 0.0f;
#pragma unroll
  for (int p = 0; p < kDepth; ++p) sum += row[p] * column[(size_t)p * n];
  return sum;
}

extern "C" __global__ void gemm(const float* a, const float* b, float* c, int m, int n, int k) {
  const int j = blockIdx.x * 16 + threadIdx.x;
  const int i = blockIdx.y * 16 + threadIdx.y;
  if (i >= m || j >= n) return;
  const float* row = a + (size_t)i * k;
  float sum = 0.0f;
  if (k == 64) {
    sum = Dot<64>(row, b + j, n);
  } else {
    for (int p = 0; p < k; ++p) sum += row[p] * b[(size_t)p * n + j];
  }
  c[(size_t)i * n + j] = sum;
}
