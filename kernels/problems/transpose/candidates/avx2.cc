/* assay-candidate
problem: "transpose"
language: CPP
label: "avx2"
*/
// 8 x 8 transposes in registers, in tiles that use whole cache lines of both tensors. In memory: 64
// x 64 blocks go through a buffer, so that reads and streaming writes are 256 bytes in a row.
// Panels of columns keep the pages of y in the TLB.
#include <immintrin.h>

#include <algorithm>

namespace {

// Bytes of y from which x and y no longer fit an 8 MiB last-level cache: streaming stores pay.
constexpr int64_t kStreamBytes = 4 << 20;
constexpr int64_t kTile = 16;
constexpr int64_t kBlock = 64;
constexpr int64_t kPanel = 256;  // columns

// to[c * to_stride + r] = from[r * from_stride + c], 8 x 8.
inline void Transpose8x8(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  __m256 r[8], t[8];
  // Rows i and i + 4 share a register: lower half columns 0-3, upper half from row i + 4.
  for (int i = 0; i < 4; ++i) {
    const float* low = from + i * from_stride;
    const float* high = from + (i + 4) * from_stride;
    r[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low)), _mm_loadu_ps(high), 1);
    r[i + 4] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low + 4)),
                                    _mm_loadu_ps(high + 4), 1);
  }
  for (int h = 0; h < 8; h += 4) {
    t[h + 0] = _mm256_unpacklo_ps(r[h + 0], r[h + 1]);
    t[h + 1] = _mm256_unpackhi_ps(r[h + 0], r[h + 1]);
    t[h + 2] = _mm256_unpacklo_ps(r[h + 2], r[h + 3]);
    t[h + 3] = _mm256_unpackhi_ps(r[h + 2], r[h + 3]);
  }
  for (int h = 0; h < 8; h += 4) {
    float* column = to + h * to_stride;
    _mm256_storeu_ps(column, _mm256_shuffle_ps(t[h], t[h + 2], 0x44));
    _mm256_storeu_ps(column + to_stride, _mm256_shuffle_ps(t[h], t[h + 2], 0xee));
    _mm256_storeu_ps(column + 2 * to_stride, _mm256_shuffle_ps(t[h + 1], t[h + 3], 0x44));
    _mm256_storeu_ps(column + 3 * to_stride, _mm256_shuffle_ps(t[h + 1], t[h + 3], 0xee));
  }
}

void Tile(const float* x, int64_t cols, float* y, int64_t rows) {
  for (int64_t i = 0; i < kTile; i += 8) {
    for (int64_t j = 0; j < kTile; j += 8) {
      Transpose8x8(x + i * cols + j, cols, y + j * rows + i, rows);
    }
  }
}

// A block of `height` rows and `width` columns, multiples of 16. Its lines of y are whole.
void BlockStreaming(const float* x, int64_t cols, float* y, int64_t rows, int64_t height,
                    int64_t width) {
  alignas(64) float buffer[kBlock * kBlock];
  for (int64_t i = 0; i < height; i += 8) {
    for (int64_t j = 0; j < width; j += 8) {
      Transpose8x8(x + i * cols + j, cols, buffer + j * kBlock + i, kBlock);
    }
  }
  for (int64_t j = 0; j < width; ++j) {
    for (int64_t i = 0; i < height; i += 8) {
      _mm256_stream_ps(y + j * rows + i, _mm256_load_ps(buffer + j * kBlock + i));
    }
  }
}

// The part of `tiled_rows` rows and `tiled_cols` columns, multiples of 16.
void Panels(const float* x, float* y, int64_t tiled_rows, int64_t tiled_cols, int64_t rows,
            int64_t cols) {
  const bool streaming = rows * cols * int64_t{sizeof(float)} >= kStreamBytes && rows % kTile == 0;
  const int64_t step = streaming ? kBlock : kTile;
  for (int64_t j0 = 0; j0 < tiled_cols; j0 += kPanel) {
    const int64_t j1 = std::min(j0 + kPanel, tiled_cols);
    for (int64_t i = 0; i < tiled_rows; i += step) {
      for (int64_t j = j0; j < j1; j += step) {
        const float* from = x + i * cols + j;
        float* to = y + j * rows + i;
        if (streaming) {
          BlockStreaming(from, cols, to, rows, std::min(kBlock, tiled_rows - i),
                         std::min(kBlock, j1 - j));
        } else {
          Tile(from, cols, to, rows);
        }
      }
    }
  }
  if (streaming) _mm_sfence();
}

void Edge(const float* x, float* y, int64_t rows, int64_t cols, int64_t i0, int64_t i1, int64_t j0,
          int64_t j1) {
  for (int64_t j = j0; j < j1; ++j) {
    for (int64_t i = i0; i < i1; ++i) y[j * rows + i] = x[i * cols + j];
  }
}

}  // namespace

extern "C" void transpose(const float* x, float* y, int64_t rows, int64_t cols) {
  const int64_t tiled_rows = rows / kTile * kTile;
  const int64_t tiled_cols = cols / kTile * kTile;
  Panels(x, y, tiled_rows, tiled_cols, rows, cols);
  Edge(x, y, rows, cols, 0, rows, tiled_cols, cols);
  Edge(x, y, rows, cols, tiled_rows, rows, 0, tiled_cols);
}
