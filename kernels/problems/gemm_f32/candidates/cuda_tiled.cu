/* assay-candidate
problem: "gemm_f32"
language: CUDA_CPP
label: "cuda_tiled"
parameters { name: "TILE" values: 32 values: 16 }
plan {
  launches {
    kernel: "gemm_f32"
    grid: "ceil_div(n, TILE)" grid: "ceil_div(m, TILE)"
    block: "TILE" block: "TILE"
    args: "a" args: "b" args: "c" args: "m" args: "n" args: "k"
  }
}
*/
// A block computes a square of c from squares of a and b in shared memory, so that each element is
// read from global memory once for TILE products. What lies outside of a matrix counts as zero.
extern "C" __global__ void __launch_bounds__(TILE* TILE)
    gemm_f32(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m,
             int n, int k) {
  __shared__ float a_tile[TILE][TILE];
  __shared__ float b_tile[TILE][TILE];
  const int x = static_cast<int>(threadIdx.x);
  const int y = static_cast<int>(threadIdx.y);
  const int i = static_cast<int>(blockIdx.y) * TILE + y;
  const int j = static_cast<int>(blockIdx.x) * TILE + x;
  float sum = 0.0f;
  for (int p0 = 0; p0 < k; p0 += TILE) {
    const bool a_inside = i < m && p0 + x < k;
    const bool b_inside = p0 + y < k && j < n;
    a_tile[y][x] = a_inside ? a[static_cast<size_t>(i) * k + p0 + x] : 0.0f;
    b_tile[y][x] = b_inside ? b[static_cast<size_t>(p0 + y) * n + j] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int p = 0; p < TILE; ++p) sum += a_tile[y][p] * b_tile[p][x];
    __syncthreads();
  }
  if (i < m && j < n) c[static_cast<size_t>(i) * n + j] = sum;
}
