/* assay-candidate
problem: "stencil7_f64"
language: CUDA_CPP
label: "cuda_planes"
parameters { name: "TILE_Y" values: 8 values: 4 values: 16 }
parameters { name: "PLANES" values: 16 values: 8 values: 32 values: 64 }
plan {
  launches {
    kernel: "stencil7_f64"
    grid: "ceil_div(nz, 32)" grid: "ceil_div(ny, TILE_Y)" grid: "ceil_div(nx, PLANES)"
    block: "32" block: "TILE_Y"
    args: "u" args: "v" args: "nx" args: "ny" args: "nz"
  }
}
*/
// A block walks along x over PLANES planes with a tile of y and z. The plane that it works on lies
// in shared memory with a rim of one point; the points before and behind a thread's own stay in
// registers, so that every point of the grid is read about once.
extern "C" __global__ void __launch_bounds__(32 * TILE_Y)
    stencil7_f64(const double* __restrict__ u, double* __restrict__ v, int nx, int ny, int nz) {
  __shared__ double tile[TILE_Y + 2][34];
  const int tz = static_cast<int>(threadIdx.x) + 1;
  const int ty = static_cast<int>(threadIdx.y) + 1;
  const int z = static_cast<int>(blockIdx.x) * 32 + tz - 1;
  const int y = static_cast<int>(blockIdx.y) * TILE_Y + ty - 1;
  const int first = static_cast<int>(blockIdx.z) * PLANES;
  const int end = min(nx, first + PLANES);
  const size_t plane = static_cast<size_t>(ny) * nz;
  const bool exists = y < ny && z < nz;
  const bool inside = y > 0 && y < ny - 1 && z > 0 && z < nz - 1;  // of the plane
  size_t i = first * plane + static_cast<size_t>(y) * nz + z;

  double behind = inside && first > 0 ? u[i - plane] : 0.0;
  double here = exists ? u[i] : 0.0;
  for (int x = first; x < end; ++x, i += plane) {
    const double ahead = exists && x + 1 < nx ? u[i + plane] : 0.0;
    if (exists) tile[ty][tz] = here;
    // The rim, for points that have a neighbour there.
    if (ty == 1 && inside) tile[0][tz] = u[i - nz];
    if (ty == TILE_Y && inside) tile[TILE_Y + 1][tz] = u[i + nz];
    if (tz == 1 && inside) tile[ty][0] = u[i - 1];
    if (tz == 32 && inside) tile[ty][33] = u[i + 1];
    __syncthreads();
    if (exists) {
      double value = here;
      if (inside && x > 0 && x < nx - 1) {
        value = (behind + ahead) + (tile[ty - 1][tz] + tile[ty + 1][tz]) +
                (tile[ty][tz - 1] + tile[ty][tz + 1]) - 6.0 * here;
      }
      v[i] = value;
    }
    __syncthreads();
    behind = here;
    here = ahead;
  }
}
