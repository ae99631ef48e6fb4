/* assay-candidate
problem: "gemm_f16"
language: CUDA_CPP
label: "cuda_mma_async"
parameters { name: "STAGES" values: 3 values: 2 values: 4 }
parameters { name: "DEPTH" values: 32 values: 16 }
plan {
  launches {
    kernel: "gemm_f16"
    grid: "ceil_div(n, 64)" grid: "ceil_div(m, 64)"
    block: "128"
    args: "a" args: "b" args: "c" args: "m" args: "n" args: "k"
  }
}
*/
// A ring of STAGES slices of a and b in shared memory is filled by asynchronous copies of 16 bytes
// while the tensor cores work on an older one (ldmatrix, mma.m16n8k16). A block computes 64 x 64 of
// c, each of its four warps a quarter. Rows that are no multiple of eight long do not begin at
// multiples of 16 bytes: those are copied element by element, into the same ring. What lies outside
// of a matrix counts as zero.
#include <cuda_fp16.h>

constexpr int kThreads = 128;
constexpr int kTile = 64;
// Eight elements more than a row needs: the rows that ldmatrix reads then lie in different banks.
constexpr int kAStride = DEPTH + 8;
constexpr int kBStride = kTile + 8;

__device__ unsigned SharedAddress(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// Begins to copy 16 bytes, or fills them with zeros.
__device__ void CopyAsync(void* to, const void* from, bool exists) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(SharedAddress(to)), "l"(from),
               "r"(exists ? 16 : 0)
               : "memory");
}

__device__ void CommitCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most `Pending` of this thread's groups are still under way.
template <int Pending>
__device__ void WaitForCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

__device__ void LoadMatrices(unsigned (&to)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(SharedAddress(row))
               : "memory");
}

__device__ void LoadMatricesTransposed(unsigned (&to)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(SharedAddress(row))
               : "memory");
}

__device__ void MultiplyAdd(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Copies eight elements at `from`, of which the first `count` exist, to shared memory.
__device__ void CopyEight(const __half* from, int count, bool aligned, const __half* any,
                          __half* to) {
  if (aligned) {
    CopyAsync(to, count > 0 ? from : any, count > 0);
    return;
  }
#pragma unroll
  for (int t = 0; t < 8; ++t) to[t] = t < count ? from[t] : __half(0.0f);
}

struct Product {
  const __half* a;
  const __half* b;
  int m;
  int n;
  int k;
};

// Begins to fill a slice with columns [p0, p0 + DEPTH) of a and rows of b.
__device__ void FillSlice(const Product& of, int i0, int j0, int p0, __half* a_slice,
                          __half* b_slice) {
#pragma unroll
  for (int v = static_cast<int>(threadIdx.x); v < kTile * DEPTH / 8; v += kThreads) {
    const int row = v / (DEPTH / 8);
    const int p = v % (DEPTH / 8) * 8;
    const int count = i0 + row < of.m ? of.k - (p0 + p) : 0;
    CopyEight(of.a + static_cast<size_t>(i0 + row) * of.k + p0 + p, count, of.k % 8 == 0, of.a,
              a_slice + row * kAStride + p);
  }
#pragma unroll
  for (int v = static_cast<int>(threadIdx.x); v < kTile * DEPTH / 8; v += kThreads) {
    const int p = v / (kTile / 8);
    const int col = v % (kTile / 8) * 8;
    const int count = p0 + p < of.k ? of.n - (j0 + col) : 0;
    CopyEight(of.b + static_cast<size_t>(p0 + p) * of.n + j0 + col, count, of.n % 8 == 0, of.b,
              b_slice + p * kBStride + col);
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    gemm_f16(const __half* __restrict__ a, const __half* __restrict__ b, float* __restrict__ c,
             int m, int n, int k) {
  __shared__ __align__(16) __half a_slices[STAGES][kTile * kAStride];
  __shared__ __align__(16) __half b_slices[STAGES][DEPTH * kBStride];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int i0 = static_cast<int>(blockIdx.y) * kTile;
  const int j0 = static_cast<int>(blockIdx.x) * kTile;
  const int row0 = warp / 2 * 32;  // of the warp's quarter in the tile
  const int col0 = warp % 2 * 32;
  const Product product = {a, b, m, n, k};
  const int slices = (k + DEPTH - 1) / DEPTH;

  // One group of copies for every slice, also for those that do not exist: the count of groups then
  // says which slice has come.
#pragma unroll
  for (int slice = 0; slice < STAGES - 1; ++slice) {
    if (slice < slices) {
      FillSlice(product, i0, j0, slice * DEPTH, a_slices[slice], b_slices[slice]);
    }
    CommitCopies();
  }

  float sum[2][4][4] = {};
  for (int slice = 0; slice < slices; ++slice) {
    WaitForCopies<STAGES - 2>();
    __syncthreads();  // the slice is there for all, and nobody reads the stage that is filled next
    const int next = slice + STAGES - 1;
    if (next < slices) {
      FillSlice(product, i0, j0, next * DEPTH, a_slices[next % STAGES], b_slices[next % STAGES]);
    }
    CommitCopies();

    const __half* a_slice = a_slices[slice % STAGES];
    const __half* b_slice = b_slices[slice % STAGES];
#pragma unroll
    for (int p = 0; p < DEPTH; p += 16) {
      unsigned a_part[2][4];
      unsigned b_part[2][4];
      // Lanes 8 i to 8 i + 7 name the rows of matrix i: upper and lower half on the left, then on
      // the right.
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        LoadMatrices(a_part[r],
                     a_slice + (row0 + 16 * r + lane % 16) * kAStride + p + lane / 16 * 8);
      }
      // Rows of b are transposed on the way: matrices 0 and 1 make eight columns, 2 and 3 the next
      // eight.
#pragma unroll
      for (int q = 0; q < 2; ++q) {
        LoadMatricesTransposed(
            b_part[q], b_slice + (p + lane % 16) * kBStride + col0 + 16 * q + lane / 16 * 8);
      }
#pragma unroll
      for (int r = 0; r < 2; ++r) {
#pragma unroll
        for (int q = 0; q < 4; ++q) {
          MultiplyAdd(sum[r][q], a_part[r], b_part[q / 2][q % 2 * 2], b_part[q / 2][q % 2 * 2 + 1]);
        }
      }
    }
  }

  // A lane has two neighbours in row lane / 4 and two in the row eight below.
#pragma unroll
  for (int r = 0; r < 2; ++r) {
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const int j = j0 + col0 + 8 * q + lane % 4 * 2;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int i = i0 + row0 + 16 * r + 8 * half + lane / 4;
        if (i >= m || j >= n) continue;
        float* out = c + static_cast<size_t>(i) * n + j;
        if (n % 2 == 0) {
          *reinterpret_cast<float2*>(out) =
              make_float2(sum[r][q][2 * half], sum[r][q][2 * half + 1]);
        } else {
          out[0] = sum[r][q][2 * half];
          if (j + 1 < n) out[1] = sum[r][q][2 * half + 1];
        }
      }
    }
  }
}
