/* assay-candidate
problem: "stencil7_f64"
language: CPP
label: "f32_arithmetic"
*/
// Wrong on purpose: the sum is formed in f32.
extern "C" void stencil7_f64(const double* u, double* v, int64_t nx, int64_t ny, int64_t nz) {
  for (int64_t x = 0; x < nx; ++x) {
    for (int64_t y = 0; y < ny; ++y) {
      for (int64_t z = 0; z < nz; ++z) {
        const int64_t at = (x * ny + y) * nz + z;
        if (x == 0 || x == nx - 1 || y == 0 || y == ny - 1 || z == 0 || z == nz - 1) {
          v[at] = u[at];
          continue;
        }
        const auto f = [u](int64_t i) { return static_cast<float>(u[i]); };
        v[at] = f(at - ny * nz) + f(at + ny * nz) + f(at - nz) + f(at + nz) + f(at - 1) +
                f(at + 1) - 6.0f * f(at);
      }
    }
  }
}
