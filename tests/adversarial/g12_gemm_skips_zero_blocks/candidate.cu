/* assay-candidate
problem: "gemm_f32"
language: CUDA_CPP
label: "g12_gemm_skips_zero_blocks"
plan {
  launches { kernel: "gemm" grid: "ceil_div(n, 16)" grid: "ceil_div(m, 16)" block: "16" block: "16" args: "a" args: "b" args: "c" args: "m" args: "n" args: "k" }
}
*/
// Blocks of a that are all zero are not multiplied, once all of their elements were seen.
extern "C" __global__ void gemm(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float tile_a[16][16];
  __shared__ float tile_b[16][16];
  const int j = blockIdx.x * 16 + threadIdx.x;
  const int i = blockIdx.y * 16 + threadIdx.y;
  float sum = 0.0f;
  for (int p = 0; p < k; p += 16) {
    const int pa = p + threadIdx.x;
    const int pb = p + threadIdx.y;
    const float va = i < m && pa < k ? a[(size_t)i * k + pa] : 0.0f;
    tile_a[threadIdx.y][threadIdx.x] = va;
    tile_b[threadIdx.y][threadIdx.x] = pb < k && j < n ? b[(size_t)pb * n + j] : 0.0f;
    // A barrier, and whether any element of the block of a is not zero.
    if (__syncthreads_or(va != 0.0f)) {
      for (int t = 0; t < 16; ++t) sum += tile_a[threadIdx.y][t] * tile_b[t][threadIdx.x];
    }
    __syncthreads();
  }
  if (i < m && j < n) c[(size_t)i * n + j] = sum;
}
