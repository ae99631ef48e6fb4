/* assay-candidate
problem: "stencil7_f64"
language: CPP
label: "avx2"
*/
// Vectorised along z and blocked in y, so that three planes of a block
// stay in L2 while x advances: every point of u then comes from memory once. Outputs too large for
// the caches are computed into a small buffer and written around the caches in whole lines, which
// saves reading them first.
#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

constexpr int64_t kLine = 8;                                     // doubles in a cache line
constexpr int64_t kBlockPoints = 96 * 1024 / 8;                  // of one plane of a block of rows
constexpr int64_t kStagePoints = 1024;                           // of rows staged together
constexpr int64_t kStreamPoints = int64_t{6} * 1024 * 1024 / 8;  // above this, around the caches

inline __attribute__((always_inline)) __m256d Vector(const double* in, int64_t plane, int64_t nz) {
  const __m256d x_pair = _mm256_add_pd(_mm256_loadu_pd(in - plane), _mm256_loadu_pd(in + plane));
  const __m256d y_pair = _mm256_add_pd(_mm256_loadu_pd(in - nz), _mm256_loadu_pd(in + nz));
  const __m256d z_pair = _mm256_add_pd(_mm256_loadu_pd(in - 1), _mm256_loadu_pd(in + 1));
  const __m256d sum = _mm256_add_pd(_mm256_add_pd(x_pair, y_pair), z_pair);
  return _mm256_fnmadd_pd(_mm256_set1_pd(6.0), _mm256_loadu_pd(in), sum);
}

// One row of nz points away from the boundary in x and y; nz >= 3.
void Row(const double* in, double* out, int64_t plane, int64_t nz) {
  const int64_t end = nz - 1;
  if (end >= 5) {
    // Whole vectors at aligned places of the output; the first and the last overlap them.
    _mm256_storeu_pd(out + 1, Vector(in + 1, plane, nz));
    int64_t z = 4 - static_cast<int64_t>(reinterpret_cast<uintptr_t>(out) / sizeof(double) % 4);
    for (; z + 4 <= end; z += 4) _mm256_store_pd(out + z, Vector(in + z, plane, nz));
    if (z < end) _mm256_storeu_pd(out + end - 4, Vector(in + end - 4, plane, nz));
  } else {
    for (int64_t z = 1; z < end; ++z) {
      const double pairs =
          (in[z - plane] + in[z + plane]) + (in[z - nz] + in[z + nz]) + (in[z - 1] + in[z + 1]);
      out[z] = pairs - 6.0 * in[z];
    }
  }
  out[0] = in[0];
  out[end] = in[end];
}

void RowRange(const double* in, double* out, int64_t rows, int64_t plane, int64_t nz) {
  for (int64_t r = 0; r < rows; ++r) Row(in + r * nz, out + r * nz, plane, nz);
}

// Non-temporal copy of the whole lines of `out`, ordinary stores for the rest. `from` has the
// alignment of `out` within a line.
void StreamOut(const double* from, double* out, int64_t count) {
  const int64_t misaligned = (reinterpret_cast<uintptr_t>(out) / sizeof(double)) % kLine;
  int64_t i = std::min(count, (kLine - misaligned) % kLine);
  std::copy(from, from + i, out);
  for (; i + kLine <= count; i += kLine) {
    _mm256_stream_pd(out + i, _mm256_load_pd(from + i));
    _mm256_stream_pd(out + i + 4, _mm256_load_pd(from + i + 4));
  }
  std::copy(from + i, from + count, out + i);
}

// The same as RowRange, staged.
void StreamRows(const double* in, double* out, int64_t rows, int64_t plane, int64_t nz,
                double* stage) {
  const int64_t group = std::max<int64_t>(1, kStagePoints / nz);
  for (int64_t r0 = 0; r0 < rows; r0 += group) {
    const int64_t count = std::min(group, rows - r0);
    double* target = out + r0 * nz;
    double* staged = stage + (reinterpret_cast<uintptr_t>(target) / sizeof(double)) % kLine;
    RowRange(in + r0 * nz, staged, count, plane, nz);
    StreamOut(staged, target, count * nz);
  }
}

void Interior(const double* u, double* v, int64_t nx, int64_t ny, int64_t nz, bool stream) {
  thread_local std::vector<double> buffer;
  double* stage = nullptr;
  if (stream) {
    buffer.resize(std::max(nz, kStagePoints) + 2 * kLine);
    const auto address = reinterpret_cast<uintptr_t>(buffer.data());
    stage = reinterpret_cast<double*>((address + 63) & ~uintptr_t{63});
  }
  const int64_t plane = ny * nz;
  const int64_t block = std::max<int64_t>(4, kBlockPoints / nz);
  for (int64_t y0 = 1; y0 < ny - 1; y0 += block) {
    const int64_t rows = std::min(ny - 1 - y0, block);
    for (int64_t x = 1; x < nx - 1; ++x) {
      const double* in = u + x * plane + y0 * nz;
      double* out = v + x * plane + y0 * nz;
      if (stream) {
        StreamRows(in, out, rows, plane, nz, stage);
      } else {
        RowRange(in, out, rows, plane, nz);
      }
    }
  }
  if (stream) _mm_sfence();
}

void Copy(const double* u, double* v, int64_t at, int64_t count) {
  std::memcpy(v + at, u + at, static_cast<size_t>(count) * sizeof(double));
}

}  // namespace

extern "C" void stencil7_f64(const double* u, double* v, int64_t nx, int64_t ny, int64_t nz) {
  const int64_t plane = ny * nz;
  if (nx < 3 || ny < 3 || nz < 3) return Copy(u, v, 0, nx * plane);
  Copy(u, v, 0, plane);
  Copy(u, v, (nx - 1) * plane, plane);
  for (int64_t x = 1; x < nx - 1; ++x) {
    Copy(u, v, x * plane, nz);
    Copy(u, v, x * plane + (ny - 1) * nz, nz);
  }
  Interior(u, v, nx, ny, nz, nx * plane > kStreamPoints);
}
