/* assay-candidate
problem: "gemm_f32"
language: CUDA_CPP
label: "cuda_mma_tf32"
parameters { name: "DEPTH" values: 16 values: 32 }
plan {
  launches {
    kernel: "gemm_f32"
    grid: "ceil_div(n, 64)" grid: "ceil_div(m, 64)"
    block: "128"
    args: "a" args: "b" args: "c" args: "m" args: "n" args: "k"
  }
}
*/
// Wrong on purpose: it names no contract and so is held to f32, and multiplies in tf32.
constexpr int kThreads = 128;
constexpr int kTile = 64;
// The elements that the lanes of a warp read together then lie in different banks.
constexpr int kAStride = DEPTH + 4;
constexpr int kBStride = kTile + 8;

__device__ unsigned RoundToTf32(float value) {
  unsigned rounded;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(value));
  return rounded;
}

__device__ void MultiplyAdd(float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

extern "C" __global__ void __launch_bounds__(kThreads)
    gemm_f32(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m,
             int n, int k) {
  __shared__ unsigned a_slice[kTile][kAStride];
  __shared__ unsigned b_slice[DEPTH][kBStride];
  const int thread = static_cast<int>(threadIdx.x);
  const int group = thread % 32 / 4;  // of four lanes
  const int lane = thread % 4;        // in its group
  const int warp = thread / 32;
  const int i0 = static_cast<int>(blockIdx.y) * kTile;
  const int j0 = static_cast<int>(blockIdx.x) * kTile;
  const int row0 = warp / 2 * 32;  // of the warp's quarter in the tile
  const int col0 = warp % 2 * 32;

  float sum[2][4][4] = {};
  for (int p0 = 0; p0 < k; p0 += DEPTH) {
    for (int v = thread; v < kTile * DEPTH; v += kThreads) {
      const int i = v / DEPTH;
      const int p = v % DEPTH;
      const bool is_inside = i0 + i < m && p0 + p < k;
      a_slice[i][p] = RoundToTf32(is_inside ? a[static_cast<size_t>(i0 + i) * k + p0 + p] : 0.0f);
    }
    for (int v = thread; v < DEPTH * kTile; v += kThreads) {
      const int p = v / kTile;
      const int j = v % kTile;
      const bool is_inside = p0 + p < k && j0 + j < n;
      b_slice[p][j] = RoundToTf32(is_inside ? b[static_cast<size_t>(p0 + p) * n + j0 + j] : 0.0f);
    }
    __syncthreads();
#pragma unroll
    for (int p = 0; p < DEPTH; p += 8) {
      unsigned a_part[2][4];
      unsigned b_part[4][2];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int row = row0 + 16 * r + group;
        a_part[r][0] = a_slice[row][p + lane];
        a_part[r][1] = a_slice[row + 8][p + lane];
        a_part[r][2] = a_slice[row][p + lane + 4];
        a_part[r][3] = a_slice[row + 8][p + lane + 4];
      }
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        const int col = col0 + 8 * q + group;
        b_part[q][0] = b_slice[p + lane][col];
        b_part[q][1] = b_slice[p + lane + 4][col];
      }
#pragma unroll
      for (int r = 0; r < 2; ++r) {
#pragma unroll
        for (int q = 0; q < 4; ++q) MultiplyAdd(sum[r][q], a_part[r], b_part[q]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
#pragma unroll
    for (int q = 0; q < 4; ++q) {
#pragma unroll
      for (int t = 0; t < 4; ++t) {
        const int i = i0 + row0 + 16 * r + group + t / 2 * 8;
        const int j = j0 + col0 + 8 * q + 2 * lane + t % 2;
        if (i < m && j < n) c[static_cast<size_t>(i) * n + j] = sum[r][q][t];
      }
    }
  }
}
