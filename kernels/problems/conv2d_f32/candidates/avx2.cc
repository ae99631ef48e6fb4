/* assay-candidate
problem: "conv2d_f32"
language: CPP
label: "avx2"
*/
// Tiles of 6 filters by 16 neighbouring pixels of one row of the output, in 12 registers, over all
// taps. Weights are packed tap by tap for each group of 6 filters; the image is read in place,
// since the pixels that a tap needs are neighbours too. The last tile of a row that has 16 pixels
// is moved left to be whole.
#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace {

constexpr int64_t kFilters = 6;  // of a tile
constexpr int64_t kPixels = 16;  // of a tile

struct Shape {
  int64_t c, h, w, f, r;
  int64_t rows() const { return h - r + 1; }
  int64_t cols() const { return w - r + 1; }
  int64_t taps() const { return c * r * r; }
};

// F filters, 8 * V pixels from `in` on. Lanes beyond the row of the output are off when V is 1.
template <int F, int V>
void Tile(const Shape& shape, const float* in, const float* packed, float* out, __m256i lanes) {
  __m256 sum[F][V];
#pragma GCC unroll 6
  for (int i = 0; i < F; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) sum[i][v] = _mm256_setzero_ps();
  }
  for (int64_t channel = 0; channel < shape.c; ++channel) {
    for (int64_t s = 0; s < shape.r; ++s) {
      const float* row = in + (channel * shape.h + s) * shape.w;
      for (int64_t t = 0; t < shape.r; ++t) {
        __m256 pixels[V];
#pragma GCC unroll 2
        for (int v = 0; v < V; ++v) {
          pixels[v] =
              V == 1 ? _mm256_maskload_ps(row + t, lanes) : _mm256_loadu_ps(row + t + 8 * v);
        }
#pragma GCC unroll 6
        for (int i = 0; i < F; ++i) {
          const __m256 tap = _mm256_broadcast_ss(packed + i);
#pragma GCC unroll 2
          for (int v = 0; v < V; ++v) sum[i][v] = _mm256_fmadd_ps(tap, pixels[v], sum[i][v]);
        }
        packed += F;
      }
    }
  }
  const int64_t plane = shape.rows() * shape.cols();
#pragma GCC unroll 6
  for (int i = 0; i < F; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      if (V == 1) {
        _mm256_maskstore_ps(out + i * plane, lanes, sum[i][v]);
      } else {
        _mm256_storeu_ps(out + i * plane + 8 * v, sum[i][v]);
      }
    }
  }
}

// All pixels of one image for one group of F filters.
template <int F>
void Group(const Shape& shape, const float* image, const float* packed, float* out) {
  const int64_t cols = shape.cols();
  const __m256i order = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i all = _mm256_set1_epi32(-1);
  for (int64_t p = 0; p < shape.rows(); ++p) {
    const float* in = image + p * shape.w;
    float* row = out + p * cols;
    if (cols >= kPixels) {
      for (int64_t q = 0; q < cols; q += kPixels) {
        const int64_t at = std::min(q, cols - kPixels);
        Tile<F, 2>(shape, in + at, packed, row + at, all);
      }
    } else {
      for (int64_t q = 0; q < cols; q += 8) {
        const auto left = static_cast<int>(std::min<int64_t>(8, cols - q));
        const __m256i lanes = _mm256_cmpgt_epi32(_mm256_set1_epi32(left), order);
        Tile<F, 1>(shape, in + q, packed, row + q, lanes);
      }
    }
  }
}

void GroupOf(int64_t filters, const Shape& shape, const float* image, const float* packed,
             float* out) {
  switch (filters) {
    case 6:
      return Group<6>(shape, image, packed, out);
    case 5:
      return Group<5>(shape, image, packed, out);
    case 4:
      return Group<4>(shape, image, packed, out);
    case 3:
      return Group<3>(shape, image, packed, out);
    case 2:
      return Group<2>(shape, image, packed, out);
    default:
      return Group<1>(shape, image, packed, out);
  }
}

}  // namespace

extern "C" void conv2d_f32(const float* x, const float* weight, float* y, int64_t n, int64_t c,
                           int64_t h, int64_t w, int64_t f, int64_t r) {
  const Shape shape{c, h, w, f, r};
  const int64_t taps = shape.taps();
  const int64_t plane = shape.rows() * shape.cols();
  thread_local std::vector<float> packed;
  packed.resize(kFilters * taps);
  for (int64_t first = 0; first < f; first += kFilters) {
    const int64_t filters = std::min(kFilters, f - first);
    for (int64_t tap = 0; tap < taps; ++tap) {
      for (int64_t i = 0; i < filters; ++i) {
        packed[tap * filters + i] = weight[(first + i) * taps + tap];
      }
    }
    for (int64_t image = 0; image < n; ++image) {
      GroupOf(filters, shape, x + image * c * h * w, packed.data(),
              y + (image * f + first) * plane);
    }
  }
}
