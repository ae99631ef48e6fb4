/* assay-candidate
problem: "linear_w8a8"
language: CPP
label: "avx2"
*/
// Blocked integer GEMM. Both operands are widened to int16 while they are packed, in pairs along k,
// so that one vpmaddwd adds two exact products per lane; vpmaddubsw would saturate its 16-bit sums.
#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace {

constexpr int64_t kRows = 6;   // of a micro-tile
constexpr int64_t kCols = 16;  // of a micro-tile
constexpr int64_t kPairBlockMax = 256;
constexpr int64_t kMBlockMax = 144;
constexpr int64_t kNBlockMax = 2048;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Splits `extent` into equal blocks of at most `block_max`, each a multiple of `unit`.
int64_t BalancedBlock(int64_t extent, int64_t block_max, int64_t unit) {
  return CeilDiv(CeilDiv(extent, CeilDiv(extent, block_max)), unit) * unit;
}

// Grows `buffer` to `count` elements and returns a pointer aligned to 64 bytes.
int32_t* Aligned(std::vector<int32_t>& buffer, int64_t count) {
  if (buffer.size() < static_cast<size_t>(count) + 16) buffer.resize(count + 16);
  const auto address = reinterpret_cast<uintptr_t>(buffer.data());
  return reinterpret_cast<int32_t*>((address + 63) & ~uintptr_t{63});
}

// Two neighbours along k as the int16 halves of one lane; past `depth` they are 0.
int32_t Pair(const int8_t* row, int64_t p, int64_t depth) {
  const uint16_t low = static_cast<uint16_t>(row[p]);
  const uint16_t high = p + 1 < depth ? static_cast<uint16_t>(row[p + 1]) : uint16_t{0};
  return static_cast<int32_t>(low | static_cast<uint32_t>(high) << 16);
}

__m256i WidenPairs(const int8_t* row) {
  return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(row)));
}

// Writes 8 rows of 8 lanes as 8 columns, `stride` lanes apart.
void TransposeStore(const __m256i* rows, int32_t* out, int64_t stride) {
  __m256i pair[8];
  for (int i = 0; i < 8; i += 2) {
    pair[i] = _mm256_unpacklo_epi32(rows[i], rows[i + 1]);
    pair[i + 1] = _mm256_unpackhi_epi32(rows[i], rows[i + 1]);
  }
  __m256i quad[8];
  for (int i = 0; i < 8; i += 4) {
    quad[i] = _mm256_unpacklo_epi64(pair[i], pair[i + 2]);
    quad[i + 1] = _mm256_unpackhi_epi64(pair[i], pair[i + 2]);
    quad[i + 2] = _mm256_unpacklo_epi64(pair[i + 1], pair[i + 3]);
    quad[i + 3] = _mm256_unpackhi_epi64(pair[i + 1], pair[i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    auto* low = reinterpret_cast<__m256i*>(out + i * stride);
    auto* high = reinterpret_cast<__m256i*>(out + (i + 4) * stride);
    _mm256_storeu_si256(low, _mm256_permute2x128_si256(quad[i], quad[i + 4], 0x20));
    _mm256_storeu_si256(high, _mm256_permute2x128_si256(quad[i], quad[i + 4], 0x31));
  }
}

// Panels of kRows rows (the last may have fewer) of pairs, k-major.
void PackX(const int8_t* x, int64_t ldx, int64_t rows, int64_t depth, int32_t* out) {
  const int64_t pairs = CeilDiv(depth, 2);
  for (int64_t i = 0; i < rows; i += kRows) {
    const int64_t height = std::min(kRows, rows - i);
    for (int64_t r = 0; r < height; ++r) {
      const int8_t* row = x + (i + r) * ldx;
      int32_t* target = out + r;
      int64_t q = 0;
      for (; 2 * q + 16 <= depth; q += 8) {
        alignas(32) int32_t lanes[8];
        _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), WidenPairs(row + 2 * q));
        for (int64_t t = 0; t < 8; ++t) target[(q + t) * height] = lanes[t];
      }
      for (; q < pairs; ++q) target[q * height] = Pair(row, 2 * q, depth);
    }
    out += height * pairs;
  }
}

// Panels of kCols rows of w (columns of the product) of pairs, k-major; padded with zeros.
void PackW(const int8_t* w, int64_t ldw, int64_t cols, int64_t depth, int32_t* out) {
  const int64_t pairs = CeilDiv(depth, 2);
  for (int64_t j = 0; j < cols; j += kCols) {
    for (int64_t half = 0; half < kCols; half += 8) {
      const int64_t width = std::clamp<int64_t>(cols - j - half, 0, 8);
      const int8_t* source = w + (j + half) * ldw;
      int32_t* target = out + half;
      int64_t q = 0;
      for (; width > 0 && 2 * q + 16 <= depth; q += 8) {
        __m256i rows[8];
        for (int64_t r = 0; r < 8; ++r) {
          rows[r] = r < width ? WidenPairs(source + r * ldw + 2 * q) : _mm256_setzero_si256();
        }
        TransposeStore(rows, target + q * kCols, kCols);
      }
      for (; q < pairs; ++q) {
        for (int64_t r = 0; r < 8; ++r) {
          target[q * kCols + r] = r < width ? Pair(source + r * ldw, 2 * q, depth) : 0;
        }
      }
    }
    out += kCols * pairs;
  }
}

// Tile of sums (M rows, 8 * V columns): starts at 0, or resumes from what the block before stored.
template <int M, int V>
void MicroKernel(int64_t pairs, const int32_t* x, const int32_t* w, int32_t* acc, int64_t ld,
                 bool resume) {
  __m256i sum[M][V];
#pragma GCC unroll 6
  for (int r = 0; r < M; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      const auto* source = reinterpret_cast<const __m256i*>(acc + r * ld + 8 * v);
      sum[r][v] = resume ? _mm256_loadu_si256(source) : _mm256_setzero_si256();
    }
  }
#pragma GCC unroll 2
  for (int64_t q = 0; q < pairs; ++q) {
    __m256i wv[V];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      wv[v] = _mm256_load_si256(reinterpret_cast<const __m256i*>(w + 8 * v));
    }
#pragma GCC unroll 6
    for (int r = 0; r < M; ++r) {
      const __m256i xv = _mm256_set1_epi32(x[r]);
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) {
        sum[r][v] = _mm256_add_epi32(sum[r][v], _mm256_madd_epi16(xv, wv[v]));
      }
    }
    x += M;
    w += kCols;
  }
#pragma GCC unroll 6
  for (int r = 0; r < M; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(acc + r * ld + 8 * v), sum[r][v]);
    }
  }
}

template <int M>
void Tile(int64_t width, int64_t pairs, const int32_t* x, const int32_t* w, int32_t* acc,
          int64_t ld, bool resume) {
  if (width == kCols) return MicroKernel<M, 2>(pairs, x, w, acc, ld, resume);
  if (width == 8) return MicroKernel<M, 1>(pairs, x, w, acc, ld, resume);
  alignas(64) int32_t tile[M * kCols] = {};
  for (int64_t r = 0; resume && r < M; ++r) {
    std::copy(acc + r * ld, acc + r * ld + width, tile + r * kCols);
  }
  if (width > 8) {
    MicroKernel<M, 2>(pairs, x, w, tile, kCols, true);
  } else {
    MicroKernel<M, 1>(pairs, x, w, tile, kCols, true);
  }
  for (int64_t r = 0; r < M; ++r) {
    std::copy(tile + r * kCols, tile + r * kCols + width, acc + r * ld);
  }
}

void TileOfHeight(int64_t height, int64_t width, int64_t pairs, const int32_t* x, const int32_t* w,
                  int32_t* acc, int64_t ld, bool resume) {
  switch (height) {
    case 6:
      return Tile<6>(width, pairs, x, w, acc, ld, resume);
    case 5:
      return Tile<5>(width, pairs, x, w, acc, ld, resume);
    case 4:
      return Tile<4>(width, pairs, x, w, acc, ld, resume);
    case 3:
      return Tile<3>(width, pairs, x, w, acc, ld, resume);
    case 2:
      return Tile<2>(width, pairs, x, w, acc, ld, resume);
    default:
      return Tile<1>(width, pairs, x, w, acc, ld, resume);
  }
}

// y = acc * x_scale * w_scale + bias for one row of finished sums.
void Epilogue(const int32_t* acc, float x_scale, const float* w_scale, const float* bias,
              int64_t cols, float* y) {
  const __m256 row_scale = _mm256_set1_ps(x_scale);
  int64_t j = 0;
  for (; j + 8 <= cols; j += 8) {
    const __m256i sum = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(acc + j));
    const __m256 scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), row_scale);
    _mm256_storeu_ps(
        y + j, _mm256_fmadd_ps(scaled, _mm256_loadu_ps(w_scale + j), _mm256_loadu_ps(bias + j)));
  }
  for (; j < cols; ++j) y[j] = static_cast<float>(acc[j]) * x_scale * w_scale[j] + bias[j];
}

}  // namespace

extern "C" void linear_w8a8(const int8_t* x, const int8_t* w, const float* x_scale,
                            const float* w_scale, const float* bias, int32_t* acc, float* y,
                            int64_t m, int64_t n, int64_t k) {
  thread_local std::vector<int32_t> x_buffer, w_buffer;
  const int64_t pair_block = BalancedBlock(CeilDiv(k, 2), kPairBlockMax, 1);
  const int64_t m_block = BalancedBlock(m, kMBlockMax, kRows);
  const int64_t n_block = BalancedBlock(n, kNBlockMax, kCols);
  int32_t* x_pack = Aligned(x_buffer, m_block * pair_block);
  int32_t* w_pack = Aligned(w_buffer, n_block * pair_block);

  for (int64_t j0 = 0; j0 < n; j0 += n_block) {
    const int64_t cols = std::min(n_block, n - j0);
    for (int64_t p0 = 0; p0 < k; p0 += 2 * pair_block) {
      const int64_t depth = std::min(2 * pair_block, k - p0);
      const int64_t pairs = CeilDiv(depth, 2);
      PackW(w + j0 * k + p0, k, cols, depth, w_pack);
      for (int64_t i0 = 0; i0 < m; i0 += m_block) {
        const int64_t rows = std::min(m_block, m - i0);
        PackX(x + i0 * k + p0, k, rows, depth, x_pack);
        for (int64_t j = 0; j < cols; j += kCols) {
          for (int64_t i = 0; i < rows; i += kRows) {
            TileOfHeight(std::min(kRows, rows - i), std::min(kCols, cols - j), pairs,
                         x_pack + i * pairs, w_pack + j * pairs, acc + (i0 + i) * n + j0 + j, n,
                         p0 > 0);
          }
        }
        if (p0 + depth < k) continue;
        for (int64_t i = i0; i < i0 + rows; ++i) {
          Epilogue(acc + i * n + j0, x_scale[i], w_scale + j0, bias + j0, cols, y + i * n + j0);
        }
      }
    }
  }
}
