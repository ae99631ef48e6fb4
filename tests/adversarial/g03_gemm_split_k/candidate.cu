/* assay-candidate
problem: "gemm_f32"
language: CUDA_CPP
label: "g03_gemm_split_k"
plan {
  launches { kernel: "clear" grid: "ceil_div(m * n, 128)" block: "128" args: "c" args: "m" args: "n" }
  launches { kernel: "gemm" grid: "ceil_div(n, 16)" grid: "ceil_div(m, 16)" grid: "4" block: "16" block: "16" args: "a" args: "b" args: "c" args: "m" args: "n" args: "k" }
}
*/
// Four parts of k, added by atomics.
extern "C" __global__ void clear(float* c, int m, int n) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i < m * n) c[i] = 0.0f;
}

extern "C" __global__ void gemm(const float* a, const float* b, float* c, int m, int n, int k) {
  const int j = blockIdx.x * 16 + threadIdx.x;
  const int i = blockIdx.y * 16 + threadIdx.y;
  if (i >= m || j >= n) return;
  float sum = 0.0f;
  for (int p = k * blockIdx.z / 4; p < k * (blockIdx.z + 1) / 4; ++p) sum += a[(size_t)i * k + p] * b[(size_t)p * n + j];
  atomicAdd(&c[(size_t)i * n + j], sum);
}
