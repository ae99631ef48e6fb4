/* assay-candidate
problem: "gemm_f64"
language: CUDA_CPP
label: "cuda_register_tile"
parameters { name: "TILE" values: 64 values: 32 }
parameters { name: "DEPTH" values: 8 values: 16 }
plan {
  launches {
    kernel: "gemm_f64"
    grid: "ceil_div(n, TILE)" grid: "ceil_div(m, TILE)"
    block: "256"
    args: "a" args: "b" args: "c" args: "m" args: "n" args: "k"
  }
}
*/
// A block of 256 threads computes a square of c; a thread keeps TILE / 16 rows and columns of it in
// registers, so that a value read from shared memory serves several products. Slices of a are
// stored transposed: both operands are then read from shared memory by vectors. What lies outside
// of a matrix counts as zero.
constexpr int kThreads = 256;
constexpr int kSide = TILE / 16;  // rows and columns of a thread
constexpr int kWide = 2;          // elements of a vector
static_assert(kSide % kWide == 0 && DEPTH % kWide == 0, "whole vectors");

// The vector at `from`, of which the first `count` elements exist. `aligned`: it may be read as
// one.
__device__ double2 Load(const double* from, int count, bool aligned) {
  if (aligned && count >= kWide) return *reinterpret_cast<const double2*>(from);
  double2 out = make_double2(0.0, 0.0);
  if (count > 0) out.x = from[0];
  if (count > 1) out.y = from[1];
  return out;
}

// Rows of a thread: kWide neighbours, then the next ones 16 * kWide further on. So do columns.
__device__ int Place(int thread, int r) {
  return r / kWide * (16 * kWide) + thread * kWide + r % kWide;
}

extern "C" __global__ void __launch_bounds__(kThreads)
    gemm_f64(const double* __restrict__ a, const double* __restrict__ b, double* __restrict__ c,
             int m, int n, int k) {
  __shared__ __align__(16) double a_slice[DEPTH][TILE + 2];
  __shared__ __align__(16) double b_slice[DEPTH][TILE + 2];
  const int thread = static_cast<int>(threadIdx.x);
  const int x = thread % 16;
  const int y = thread / 16;
  const int i0 = static_cast<int>(blockIdx.y) * TILE;
  const int j0 = static_cast<int>(blockIdx.x) * TILE;
  const bool a_aligned = k % kWide == 0;
  const bool b_aligned = n % kWide == 0;

  double sum[kSide][kSide] = {};
  for (int p0 = 0; p0 < k; p0 += DEPTH) {
#pragma unroll
    for (int v = thread; v < TILE * DEPTH / kWide; v += kThreads) {
      const int row = v / (DEPTH / kWide);
      const int p = v % (DEPTH / kWide) * kWide;
      const int count = i0 + row < m ? k - (p0 + p) : 0;
      const double2 part = Load(a + static_cast<size_t>(i0 + row) * k + p0 + p, count, a_aligned);
      a_slice[p][row] = part.x;
      a_slice[p + 1][row] = part.y;
    }
#pragma unroll
    for (int v = thread; v < TILE * DEPTH / kWide; v += kThreads) {
      const int p = v / (TILE / kWide);
      const int col = v % (TILE / kWide) * kWide;
      const int count = p0 + p < k ? n - (j0 + col) : 0;
      *reinterpret_cast<double2*>(&b_slice[p][col]) =
          Load(b + static_cast<size_t>(p0 + p) * n + j0 + col, count, b_aligned);
    }
    __syncthreads();
#pragma unroll
    for (int p = 0; p < DEPTH; ++p) {
      double a_part[kSide];
      double b_part[kSide];
#pragma unroll
      for (int r = 0; r < kSide; r += kWide) {
        const double2 a_wide = *reinterpret_cast<const double2*>(&a_slice[p][Place(y, r)]);
        const double2 b_wide = *reinterpret_cast<const double2*>(&b_slice[p][Place(x, r)]);
        a_part[r] = a_wide.x;
        a_part[r + 1] = a_wide.y;
        b_part[r] = b_wide.x;
        b_part[r + 1] = b_wide.y;
      }
#pragma unroll
      for (int r = 0; r < kSide; ++r) {
#pragma unroll
        for (int q = 0; q < kSide; ++q) sum[r][q] = fma(a_part[r], b_part[q], sum[r][q]);
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int r = 0; r < kSide; ++r) {
    const int i = i0 + Place(y, r);
    if (i >= m) continue;
    double* row = c + static_cast<size_t>(i) * n;
#pragma unroll
    for (int q = 0; q < kSide; q += kWide) {
      const int j = j0 + Place(x, q);
      if (b_aligned && j < n) {
        *reinterpret_cast<double2*>(row + j) = make_double2(sum[r][q], sum[r][q + 1]);
        continue;
      }
#pragma unroll
      for (int t = 0; t < kWide; ++t) {
        if (j + t < n) row[j + t] = sum[r][q + t];
      }
    }
  }
}
