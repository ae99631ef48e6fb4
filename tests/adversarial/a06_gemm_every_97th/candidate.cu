/* assay-candidate
problem: "gemm_f32"
language: CUDA_CPP
label: "a06_gemm_every_97th"
plan {
  launches { kernel: "gemm" grid: "ceil_div(n, 16)" grid: "ceil_div(m, 16)" block: "16" block: "16" args: "a" args: "b" args: "c" args: "m" args: "n" args: "k" }
}
*/
// Every 97th element is right, the others are what an earlier call left.
__device__ float kept[4096];

extern "C" __global__ void gemm(const float* a, const float* b, float* c, int m, int n, int k) {
  const int j = blockIdx.x * 16 + threadIdx.x;
  const int i = blockIdx.y * 16 + threadIdx.y;
  if (i >= m || j >= n) return;
  const int at = i * n + j;
  if (at % 97 != 0) {
    // The last call's, and something for the next.
    c[at] = kept[at % 4096];
    kept[at % 4096] = a[(size_t)i * k] * b[j];
    return;
  }
  float sum = 0.0f;
  for (int p = 0; p < k; ++p) sum += a[(size_t)i * k + p] * b[(size_t)p * n + j];
  c[at] = sum;
}
