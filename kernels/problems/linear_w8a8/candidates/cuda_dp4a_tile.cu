/* assay-candidate
problem: "linear_w8a8"
language: CUDA_CPP
label: "cuda_dp4a_tile"
parameters { name: "WORDS" values: 8 values: 4 values: 16 }
plan {
  launches {
    kernel: "linear_w8a8"
    grid: "ceil_div(n, 64)" grid: "ceil_div(m, 64)"
    block: "256"
    args: "x" args: "w" args: "x_scale" args: "w_scale" args: "bias" args: "acc" args: "y"
    args: "m" args: "n" args: "k"
  }
}
*/
// Four neighbours along k are one word and one dp4a. A block computes a square of 64 outputs from
// slices of WORDS words in shared memory, a thread a square of four. Rows begin at multiples of
// four bytes when k is one; otherwise words are put together from bytes. What lies outside counts
// as zero.
constexpr int kThreads = 256;

// Word `word` of a row of k bytes; 0 beyond its end.
__device__ int LoadWord(const signed char* row, int word, int k, bool aligned) {
  const int left = k - 4 * word;
  if (left <= 0) return 0;
  if (aligned) return reinterpret_cast<const int*>(row)[word];
  unsigned out = 0;
#pragma unroll
  for (int t = 0; t < 4; ++t) {
    if (t < left)
      out |= static_cast<unsigned>(static_cast<unsigned char>(row[4 * word + t])) << 8 * t;
  }
  return static_cast<int>(out);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    linear_w8a8(const signed char* __restrict__ x, const signed char* __restrict__ w,
                const float* __restrict__ x_scale, const float* __restrict__ w_scale,
                const float* __restrict__ bias, int* __restrict__ acc, float* __restrict__ y, int m,
                int n, int k) {
  __shared__ __align__(16) int x_slice[WORDS][64 + 4];
  __shared__ __align__(16) int w_slice[WORDS][64 + 4];
  const int thread = static_cast<int>(threadIdx.x);
  const int tx = thread % 16;
  const int ty = thread / 16;
  const int i0 = static_cast<int>(blockIdx.y) * 64;
  const int j0 = static_cast<int>(blockIdx.x) * 64;
  const bool aligned = k % 4 == 0;
  const int words = (k + 3) / 4;

  int sum[4][4] = {};
  for (int word0 = 0; word0 < words; word0 += WORDS) {
#pragma unroll
    for (int v = thread; v < 64 * WORDS; v += kThreads) {
      const int row = v / WORDS;
      const int word = v % WORDS;
      const int i = i0 + row;
      const int j = j0 + row;
      x_slice[word][row] =
          i < m ? LoadWord(x + static_cast<size_t>(i) * k, word0 + word, k, aligned) : 0;
      w_slice[word][row] =
          j < n ? LoadWord(w + static_cast<size_t>(j) * k, word0 + word, k, aligned) : 0;
    }
    __syncthreads();
#pragma unroll
    for (int word = 0; word < WORDS; ++word) {
      const int4 a = *reinterpret_cast<const int4*>(&x_slice[word][4 * ty]);
      const int4 b = *reinterpret_cast<const int4*>(&w_slice[word][4 * tx]);
      const int a_part[4] = {a.x, a.y, a.z, a.w};
      const int b_part[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
      for (int r = 0; r < 4; ++r) {
#pragma unroll
        for (int q = 0; q < 4; ++q) sum[r][q] = __dp4a(a_part[r], b_part[q], sum[r][q]);
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const int i = i0 + 4 * ty + r;
    if (i >= m) continue;
    const float row_scale = x_scale[i];
    const size_t row = static_cast<size_t>(i) * n;
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const int j = j0 + 4 * tx + q;
      if (j >= n) continue;
      acc[row + j] = sum[r][q];
      y[row + j] = static_cast<float>(sum[r][q]) * row_scale * w_scale[j] + bias[j];
    }
  }
}
