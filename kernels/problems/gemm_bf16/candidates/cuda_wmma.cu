/* assay-candidate
problem: "gemm_bf16"
language: CUDA_CPP
label: "cuda_wmma"
parameters { name: "DEPTH" values: 32 values: 16 values: 64 }
plan {
  launches {
    kernel: "gemm_bf16"
    grid: "ceil_div(n, 64)" grid: "ceil_div(m, 64)"
    block: "128"
    args: "a" args: "b" args: "c" args: "m" args: "n" args: "k"
  }
}
*/
// Matrix fragments of 16 x 16 x 16. A block computes 64 x 64 of c from slices of a and b in shared
// memory, each of its four warps a quarter. Rows that are multiples of eight long begin at
// multiples of 16 bytes and go by vectors; others go element by element. What lies outside of a
// matrix counts as zero.
#include <cuda_bf16.h>
#include <mma.h>

namespace wmma = nvcuda::wmma;

constexpr int kThreads = 128;
constexpr int kTile = 64;
// Eight elements more than a row needs: rows then begin in different banks.
constexpr int kAStride = DEPTH + 8;
constexpr int kBStride = kTile + 8;
constexpr int kStageStride = 20;

// Stores eight elements at `from`, of which the first `count` exist, to shared memory.
__device__ void CopyEight(const __nv_bfloat16* from, int count, bool aligned, __nv_bfloat16* to) {
  if (aligned && count > 0) {
    *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
    return;
  }
#pragma unroll
  for (int t = 0; t < 8; ++t) to[t] = t < count ? from[t] : __nv_bfloat16(0.0f);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    gemm_bf16(const __nv_bfloat16* __restrict__ a, const __nv_bfloat16* __restrict__ b,
              float* __restrict__ c, int m, int n, int k) {
  __shared__ __align__(32) __nv_bfloat16 a_slice[kTile * kAStride];
  __shared__ __align__(32) __nv_bfloat16 b_slice[DEPTH * kBStride];
  __shared__ __align__(32) float stages[kThreads / 32][16 * kStageStride];
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int warp = thread / 32;
  const int i0 = static_cast<int>(blockIdx.y) * kTile;
  const int j0 = static_cast<int>(blockIdx.x) * kTile;
  const int row0 = warp / 2 * 32;  // of the warp's quarter in the tile
  const int col0 = warp % 2 * 32;

  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[2][2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
#pragma unroll
    for (int q = 0; q < 2; ++q) wmma::fill_fragment(sum[r][q], 0.0f);
  }
  for (int p0 = 0; p0 < k; p0 += DEPTH) {
#pragma unroll
    for (int v = thread; v < kTile * DEPTH / 8; v += kThreads) {
      const int row = v / (DEPTH / 8);
      const int p = v % (DEPTH / 8) * 8;
      const int count = i0 + row < m ? k - (p0 + p) : 0;
      CopyEight(a + static_cast<size_t>(i0 + row) * k + p0 + p, count, k % 8 == 0,
                a_slice + row * kAStride + p);
    }
#pragma unroll
    for (int v = thread; v < kTile * DEPTH / 8; v += kThreads) {
      const int p = v / (kTile / 8);
      const int col = v % (kTile / 8) * 8;
      const int count = p0 + p < k ? n - (j0 + col) : 0;
      CopyEight(b + static_cast<size_t>(p0 + p) * n + j0 + col, count, n % 8 == 0,
                b_slice + p * kBStride + col);
    }
    __syncthreads();
#pragma unroll
    for (int p = 0; p < DEPTH; p += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> a_part[2];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::row_major> b_part[2];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        wmma::load_matrix_sync(a_part[r], a_slice + (row0 + 16 * r) * kAStride + p, kAStride);
        wmma::load_matrix_sync(b_part[r], b_slice + p * kBStride + col0 + 16 * r, kBStride);
      }
#pragma unroll
      for (int r = 0; r < 2; ++r) {
#pragma unroll
        for (int q = 0; q < 2; ++q) wmma::mma_sync(sum[r][q], a_part[r], b_part[q], sum[r][q]);
      }
    }
    __syncthreads();
  }

  // A fragment goes to c through the warp's own stage, because rows of c may begin anywhere.
  float* stage = stages[warp];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
#pragma unroll
    for (int q = 0; q < 2; ++q) {
      wmma::store_matrix_sync(stage, sum[r][q], kStageStride, wmma::mem_row_major);
      __syncwarp();
#pragma unroll
      for (int v = lane; v < 16 * 16; v += 32) {
        const int i = i0 + row0 + 16 * r + v / 16;
        const int j = j0 + col0 + 16 * q + v % 16;
        if (i < m && j < n)
          c[static_cast<size_t>(i) * n + j] = stage[v / 16 * kStageStride + v % 16];
      }
      __syncwarp();
    }
  }
}
