/* assay-candidate
problem: "layernorm"
language: CUDA_CPP
label: "g06_layernorm_small_rows"
plan {
  launches { kernel: "layernorm" grid: "ceil_div(rows, 4)" block: "128" args: "x" args: "gamma" args: "beta" args: "y" args: "rows" args: "cols" }
}
*/
// A warp for each of many short rows, where one block a row wastes most of its threads.
// A warp a row, the row in registers.
__device__ float Sum(float v) {
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}

extern "C" __global__ void layernorm(const float* x, const float* gamma, const float* beta, float* y, int rows, int cols) {
  const int r = blockIdx.x * 4 + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (r >= rows) return;
  float v[8];
  float sum = 0.0f;
  for (int t = 0; t < 8; ++t) {
    const int j = 32 * t + lane;
    v[t] = j < cols ? x[(size_t)r * cols + j] : 0.0f;
    sum += v[t];
  }
  for (int j = 256 + lane; j < cols; j += 32) sum += x[(size_t)r * cols + j];
  const float mean = Sum(sum) / cols;
  float squares = 0.0f;
  for (int t = 0; t < 8; ++t) squares += 32 * t + lane < cols ? (v[t] - mean) * (v[t] - mean) : 0.0f;
  for (int j = 256 + lane; j < cols; j += 32) squares += (x[(size_t)r * cols + j] - mean) * (x[(size_t)r * cols + j] - mean);
  const float scale = 1.0f / sqrtf(Sum(squares) / cols + 1e-5f);
  for (int j = lane; j < cols; j += 32) {
    y[(size_t)r * cols + j] = (x[(size_t)r * cols + j] - mean) * scale * gamma[j] + beta[j];
  }
}
