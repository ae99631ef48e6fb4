/* assay-candidate
problem: "stencil7_f64"
language: CPP
label: "plain"
*/
// One pass over the grid, a test for the boundary at every point.
extern "C" void stencil7_f64(const double* u, double* v, int64_t nx, int64_t ny, int64_t nz) {
  for (int64_t x = 0; x < nx; ++x) {
    for (int64_t y = 0; y < ny; ++y) {
      for (int64_t z = 0; z < nz; ++z) {
        const int64_t at = (x * ny + y) * nz + z;
        if (x == 0 || x == nx - 1 || y == 0 || y == ny - 1 || z == 0 || z == nz - 1) {
          v[at] = u[at];
        } else {
          v[at] = u[at - ny * nz] + u[at + ny * nz] + u[at - nz] + u[at + nz] + u[at - 1] +
                  u[at + 1] - 6.0 * u[at];
        }
      }
    }
  }
}
