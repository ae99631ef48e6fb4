/* assay-candidate
problem: "softmax"
language: CUDA_CPP
label: "g28_softmax_lazy_table"
plan {
  launches { kernel: "prepare" grid: "1" block: "256" }
  launches { kernel: "softmax" grid: "rows" block: "32" args: "x" args: "y" args: "cols" }
}
*/
// exp2 of the fraction from a table of 256 entries, which the first call makes.
__device__ float table[256];
__device__ int made;

// 2^(thread / 256) by its series.
extern "C" __global__ void prepare() {
  if (made == 0) {
    const double t = threadIdx.x * (0.69314718055994530942 / 256);
    double term = 1, sum = 1;
    for (int n = 1; n < 20; ++n) {
      term *= t / n;
      sum += term;
    }
    table[threadIdx.x] = (float)sum;
  }
  __syncthreads();
  if (threadIdx.x == 0) made = 1;
}

// exp(v) for v <= 0: 2^whole * table[j] * 2^rest with |rest| < 1/256.
__device__ float Exp(float v) {
  if (v < -87.0f) return 0.0f;
  const double t = v * 1.4426950408889634;
  const double scaled = floor(t * 256);
  const int step = (int)scaled;
  const float rest = (float)((t - scaled / 256) * 0.69314718055994530942);
  const int whole = step >> 8;
  const float power = __int_as_float((whole + 127) << 23);
  return power * table[step & 255] * (1.0f + rest * (1.0f + rest * (0.5f + rest * (1.0f / 6))));
}

extern "C" __global__ void softmax(const float* x, float* y, int cols) {
  const float* row = x + (size_t)blockIdx.x * cols;
  float* out = y + (size_t)blockIdx.x * cols;
  float peak = row[0];
  for (int j = threadIdx.x; j < cols; j += 32) peak = fmaxf(peak, row[j]);
  for (int d = 16; d > 0; d /= 2) peak = fmaxf(peak, __shfl_xor_sync(0xffffffffu, peak, d));
  float sum = 0.0f;
  for (int j = threadIdx.x; j < cols; j += 32) sum += Exp(row[j] - peak);
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  for (int j = threadIdx.x; j < cols; j += 32) out[j] = Exp(row[j] - peak) / sum;
}
