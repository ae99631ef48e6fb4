/* assay-candidate
problem: "stencil7_f64"
language: CPP
label: "skips_z_tail"
*/
// Wrong on purpose: four points of z at a time, and the interior points after the last whole group
// are copied like the boundary.
extern "C" void stencil7_f64(const double* u, double* v, int64_t nx, int64_t ny, int64_t nz) {
  for (int64_t i = 0; i < nx * ny * nz; ++i) v[i] = u[i];
  for (int64_t x = 1; x + 1 < nx; ++x) {
    for (int64_t y = 1; y + 1 < ny; ++y) {
      for (int64_t z = 1; z + 4 < nz; z += 4) {
        for (int64_t t = z; t < z + 4; ++t) {
          const int64_t at = (x * ny + y) * nz + t;
          v[at] = u[at - ny * nz] + u[at + ny * nz] + u[at - nz] + u[at + nz] + u[at - 1] +
                  u[at + 1] - 6.0 * u[at];
        }
      }
    }
  }
}
