/* assay-candidate
problem: "stencil7_f64"
language: CUDA_CPP
label: "cuda_plain"
plan {
  launches {
    kernel: "stencil7_f64"
    grid: "ceil_div(nx * ny * nz, 256)"
    block: "256"
    args: "u" args: "v" args: "nx" args: "ny" args: "nz"
  }
}
*/
// One thread for each point.
extern "C" __global__ void stencil7_f64(const double* u, double* v, int nx, int ny, int nz) {
  const size_t i = static_cast<size_t>(blockIdx.x) * 256 + threadIdx.x;
  const size_t plane = static_cast<size_t>(ny) * nz;
  if (i >= nx * plane) return;
  const int z = static_cast<int>(i % nz);
  const int y = static_cast<int>(i / nz % ny);
  const int x = static_cast<int>(i / plane);
  const bool inside = x > 0 && x < nx - 1 && y > 0 && y < ny - 1 && z > 0 && z < nz - 1;
  double value = u[i];
  if (inside) {
    value = u[i - plane] + u[i + plane] + u[i - nz] + u[i + nz] + u[i - 1] + u[i + 1] - 6.0 * value;
  }
  v[i] = value;
}
