/* assay-candidate
problem: "conv2d_f32"
language: CUDA_CPP
label: "cuda_implicit_gemm"
parameters { name: "DEPTH" values: 16 values: 8 values: 32 }
plan {
  launches {
    kernel: "conv2d_f32"
    grid: "ceil_div(n * (h - r + 1) * (w - r + 1), 64)" grid: "ceil_div(f, 64)"
    block: "256"
    args: "x" args: "weight" args: "y" args: "n" args: "c" args: "h" args: "w" args: "f" args: "r"
  }
}
*/
// The product of the weights, [f, taps], with the patches of all pixels, [taps, pixels], which are
// never stored: slices of them are gathered into shared memory. A block computes 64 filters for 64
// pixels, a thread a square of four. What lies outside counts as zero.
constexpr int kThreads = 256;
static_assert(DEPTH % 4 == 0, "every thread gathers the same pixel for each of its taps");

extern "C" __global__ void __launch_bounds__(kThreads)
    conv2d_f32(const float* __restrict__ x, const float* __restrict__ weight, float* __restrict__ y,
               int n, int c, int h, int w, int f, int r) {
  __shared__ __align__(16) float weights[DEPTH][64 + 4];
  __shared__ __align__(16) float patches[DEPTH][64];
  const int thread = static_cast<int>(threadIdx.x);
  const int tx = thread % 16;
  const int ty = thread / 16;
  const int rows = h - r + 1;
  const int cols = w - r + 1;
  const int taps = c * r * r;
  const size_t plane = static_cast<size_t>(rows) * cols;
  const size_t pixels = n * plane;
  const size_t pixel0 = static_cast<size_t>(blockIdx.x) * 64;
  const int filter0 = static_cast<int>(blockIdx.y) * 64;

  // The pixel that this thread gathers patches of.
  const size_t gathered = pixel0 + thread % 64;
  const bool gathers = gathered < pixels;
  const size_t image = gathered / plane;
  const size_t within = gathered % plane;
  const float* corner = x + image * c * h * w + within / cols * w + within % cols;

  float sum[4][4] = {};
  for (int tap0 = 0; tap0 < taps; tap0 += DEPTH) {
#pragma unroll
    for (int v = thread; v < 64 * DEPTH; v += kThreads) {
      const int filter = filter0 + v / DEPTH;
      const int tap = tap0 + v % DEPTH;
      const bool exists = filter < f && tap < taps;
      weights[v % DEPTH][v / DEPTH] =
          exists ? weight[static_cast<size_t>(filter) * taps + tap] : 0.0f;
    }
#pragma unroll
    for (int row = thread / 64; row < DEPTH; row += kThreads / 64) {
      const int tap = tap0 + row;
      float value = 0.0f;
      if (gathers && tap < taps) {
        const int channel = tap / (r * r);
        const int s = tap % (r * r) / r;
        const int t = tap % r;
        value = corner[(static_cast<size_t>(channel) * h + s) * w + t];
      }
      patches[row][thread % 64] = value;
    }
    __syncthreads();
#pragma unroll
    for (int p = 0; p < DEPTH; ++p) {
      const float4 a = *reinterpret_cast<const float4*>(&weights[p][4 * ty]);
      const float4 b = *reinterpret_cast<const float4*>(&patches[p][4 * tx]);
      const float a_part[4] = {a.x, a.y, a.z, a.w};
      const float b_part[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[i][j] = fmaf(a_part[i], b_part[j], sum[i][j]);
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const size_t pixel = pixel0 + 4 * tx + j;
    if (pixel >= pixels) continue;
    float* out = y + pixel / plane * f * plane + pixel % plane;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int filter = filter0 + 4 * ty + i;
      if (filter < f) out[filter * plane] = sum[i][j];
    }
  }
}
