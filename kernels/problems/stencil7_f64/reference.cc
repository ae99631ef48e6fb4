// The definition in fp64; the boundary is a copy.
#include <cstdint>

extern "C" void stencil7_f64_reference(const double* u, double* v, int64_t nx, int64_t ny,
                                       int64_t nz) {
  const int64_t plane = ny * nz;
  for (int64_t x = 0; x < nx; ++x) {
    for (int64_t y = 0; y < ny; ++y) {
      const double* in = u + x * plane + y * nz;
      double* out = v + x * plane + y * nz;
      const bool edge = x == 0 || x == nx - 1 || y == 0 || y == ny - 1;
      for (int64_t z = 0; z < nz; ++z) {
        if (edge || z == 0 || z == nz - 1) {
          out[z] = in[z];
        } else {
          const double x_pair = in[z - plane] + in[z + plane];
          const double y_pair = in[z - nz] + in[z + nz];
          const double z_pair = in[z - 1] + in[z + 1];
          out[z] = (x_pair + y_pair + z_pair) - 6.0 * in[z];
        }
      }
    }
  }
}
