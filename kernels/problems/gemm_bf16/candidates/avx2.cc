/* assay-candidate
problem: "gemm_bf16"
language: CPP
label: "avx2"
*/
// Blocked GEMM over packed panels of f32 with a 6x16 FMA micro-kernel. The operands are widened
// while they are packed, once for each block, so that the inner loop is that of an f32 product.
#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace {

constexpr int64_t kRows = 6;   // of a micro-tile
constexpr int64_t kCols = 16;  // of a micro-tile
constexpr int64_t kKBlockMax = 256;
constexpr int64_t kMBlockMax = 144;
constexpr int64_t kNBlockMax = 2048;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Splits `extent` into equal blocks of at most `block_max`, each a multiple of `unit`.
int64_t BalancedBlock(int64_t extent, int64_t block_max, int64_t unit) {
  return CeilDiv(CeilDiv(extent, CeilDiv(extent, block_max)), unit) * unit;
}

// Grows `buffer` to `count` elements and returns a pointer aligned to 64 bytes.
float* Aligned(std::vector<float>& buffer, int64_t count) {
  if (buffer.size() < static_cast<size_t>(count) + 16) buffer.resize(count + 16);
  const auto address = reinterpret_cast<uintptr_t>(buffer.data());
  return reinterpret_cast<float*>((address + 63) & ~uintptr_t{63});
}

float Widen(uint16_t half) {
  return _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(static_cast<int32_t>(half) << 16)));
}

__m256 WidenEight(const uint16_t* source) {
  const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}

// Panels of kRows rows (the last may have fewer), each k-major.
void PackA(const uint16_t* a, int64_t lda, int64_t rows, int64_t depth, float* out) {
  for (int64_t i = 0; i < rows; i += kRows) {
    const int64_t height = std::min(kRows, rows - i);
    const uint16_t* source = a + i * lda;
    int64_t p = 0;
    for (; p + 8 <= depth; p += 8) {
      for (int64_t r = 0; r < height; ++r) {
        alignas(32) float wide[8];
        _mm256_store_ps(wide, WidenEight(source + r * lda + p));
        for (int64_t x = 0; x < 8; ++x) out[(p + x) * height + r] = wide[x];
      }
    }
    for (; p < depth; ++p) {
      for (int64_t r = 0; r < height; ++r) out[p * height + r] = Widen(source[r * lda + p]);
    }
    out += height * depth;
  }
}

// Panels of kCols columns, k-major; the last is padded with zeros.
void PackB(const uint16_t* b, int64_t ldb, int64_t depth, int64_t cols, float* out) {
  for (int64_t j = 0; j < cols; j += kCols) {
    const int64_t width = std::min(kCols, cols - j);
    const uint16_t* source = b + j;
    if (width == kCols) {
      for (int64_t p = 0; p < depth; ++p, source += ldb, out += kCols) {
        _mm256_store_ps(out, WidenEight(source));
        _mm256_store_ps(out + 8, WidenEight(source + 8));
      }
    } else {
      for (int64_t p = 0; p < depth; ++p, source += ldb, out += kCols) {
        for (int64_t x = 0; x < kCols; ++x) out[x] = x < width ? Widen(source[x]) : 0.0f;
      }
    }
  }
}

// C tile (M rows, 8 * V columns) = or += A panel * B panel.
template <int M, int V>
void MicroKernel(int64_t depth, const float* a, const float* b, float* c, int64_t ldc,
                 bool accumulate) {
  __m256 acc[M][V];
#pragma GCC unroll 6
  for (int r = 0; r < M; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) acc[r][v] = _mm256_setzero_ps();
    __builtin_prefetch(c + r * ldc);
  }
#pragma GCC unroll 4
  for (int64_t p = 0; p < depth; ++p) {
    __m256 bv[V];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) bv[v] = _mm256_load_ps(b + 8 * v);
#pragma GCC unroll 6
    for (int r = 0; r < M; ++r) {
      const __m256 av = _mm256_broadcast_ss(a + r);
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) acc[r][v] = _mm256_fmadd_ps(av, bv[v], acc[r][v]);
    }
    a += M;
    b += kCols;
  }
#pragma GCC unroll 6
  for (int r = 0; r < M; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      float* target = c + r * ldc + 8 * v;
      if (accumulate) acc[r][v] = _mm256_add_ps(acc[r][v], _mm256_loadu_ps(target));
      _mm256_storeu_ps(target, acc[r][v]);
    }
  }
}

template <int M>
void Tile(int64_t width, int64_t depth, const float* a, const float* b, float* c, int64_t ldc,
          bool accumulate) {
  if (width == kCols) return MicroKernel<M, 2>(depth, a, b, c, ldc, accumulate);
  if (width == 8) return MicroKernel<M, 1>(depth, a, b, c, ldc, accumulate);
  alignas(64) float tile[M * kCols];
  if (width > 8) {
    MicroKernel<M, 2>(depth, a, b, tile, kCols, false);
  } else {
    MicroKernel<M, 1>(depth, a, b, tile, kCols, false);
  }
  for (int64_t r = 0; r < M; ++r) {
    for (int64_t x = 0; x < width; ++x) {
      c[r * ldc + x] = tile[r * kCols + x] + (accumulate ? c[r * ldc + x] : 0.0f);
    }
  }
}

void TileOfHeight(int64_t height, int64_t width, int64_t depth, const float* a, const float* b,
                  float* c, int64_t ldc, bool accumulate) {
  switch (height) {
    case 6:
      return Tile<6>(width, depth, a, b, c, ldc, accumulate);
    case 5:
      return Tile<5>(width, depth, a, b, c, ldc, accumulate);
    case 4:
      return Tile<4>(width, depth, a, b, c, ldc, accumulate);
    case 3:
      return Tile<3>(width, depth, a, b, c, ldc, accumulate);
    case 2:
      return Tile<2>(width, depth, a, b, c, ldc, accumulate);
    default:
      return Tile<1>(width, depth, a, b, c, ldc, accumulate);
  }
}

}  // namespace

extern "C" void gemm_bf16(const uint16_t* a, const uint16_t* b, float* c, int64_t m, int64_t n,
                          int64_t k) {
  thread_local std::vector<float> a_buffer, b_buffer;
  const int64_t k_block = BalancedBlock(k, kKBlockMax, 1);
  const int64_t m_block = BalancedBlock(m, kMBlockMax, kRows);
  const int64_t n_block = BalancedBlock(n, kNBlockMax, kCols);
  float* a_pack = Aligned(a_buffer, m_block * k_block);
  float* b_pack = Aligned(b_buffer, n_block * k_block);

  for (int64_t j0 = 0; j0 < n; j0 += n_block) {
    const int64_t cols = std::min(n_block, n - j0);
    for (int64_t p0 = 0; p0 < k; p0 += k_block) {
      const int64_t depth = std::min(k_block, k - p0);
      PackB(b + p0 * n + j0, n, depth, cols, b_pack);
      for (int64_t i0 = 0; i0 < m; i0 += m_block) {
        const int64_t rows = std::min(m_block, m - i0);
        PackA(a + i0 * k + p0, k, rows, depth, a_pack);
        for (int64_t j = 0; j < cols; j += kCols) {
          for (int64_t i = 0; i < rows; i += kRows) {
            TileOfHeight(std::min(kRows, rows - i), std::min(kCols, cols - j), depth,
                         a_pack + i * depth, b_pack + j * depth, c + (i0 + i) * n + j0 + j, n,
                         p0 > 0);
          }
        }
      }
    }
  }
}
