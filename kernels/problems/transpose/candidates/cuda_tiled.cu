/* assay-candidate
problem: "transpose"
language: CUDA_CPP
label: "cuda_tiled"
parameters { name: "TILE_ROWS" values: 8 values: 4 values: 16 values: 32 }
constraints: "32 % TILE_ROWS == 0"
plan {
  launches {
    kernel: "transpose"
    grid: "ceil_div(cols, 32)" grid: "min(ceil_div(rows, 32), 65535)"
    block: "32" block: "TILE_ROWS"
    args: "x" args: "y" args: "rows" args: "cols"
  }
}
*/
// Tiles of 32 x 32 go through shared memory, so that both reads and writes run along rows. A row of
// the tile has one element more than it needs: a column then touches every bank once.
extern "C" __global__ void __launch_bounds__(32 * TILE_ROWS)
    transpose(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
  __shared__ float tile[32][33];
  const int lane = static_cast<int>(threadIdx.x);
  const int first = static_cast<int>(threadIdx.y);
  const long long j0 = static_cast<long long>(blockIdx.x) * 32;
  for (long long i0 = static_cast<long long>(blockIdx.y) * 32; i0 < rows; i0 += gridDim.y * 32LL) {
#pragma unroll
    for (int r = first; r < 32; r += TILE_ROWS) {
      if (i0 + r < rows && j0 + lane < cols) tile[r][lane] = x[(i0 + r) * cols + j0 + lane];
    }
    __syncthreads();
#pragma unroll
    for (int r = first; r < 32; r += TILE_ROWS) {
      if (j0 + r < cols && i0 + lane < rows) y[(j0 + r) * rows + i0 + lane] = tile[lane][r];
    }
    __syncthreads();
  }
}
