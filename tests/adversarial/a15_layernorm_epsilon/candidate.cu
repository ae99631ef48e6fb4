/* assay-candidate
problem: "layernorm"
language: CUDA_CPP
label: "a15_layernorm_epsilon"
plan {
  launches { kernel: "layernorm" grid: "rows" block: "32" args: "x" args: "gamma" args: "beta" args: "y" args: "cols" }
}
*/
// Epsilon of 1e-3 instead of 1e-5.
// One warp a row.
__device__ float Sum(float v) {
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}

extern "C" __global__ void layernorm(const float* x, const float* gamma, const float* beta, float* y, int cols) {
  const float* row = x + (size_t)blockIdx.x * cols;
  float sum = 0.0f;
  for (int j = threadIdx.x; j < cols; j += 32) sum += row[j];
  const float mean = Sum(sum) / cols;
  float squares = 0.0f;
  for (int j = threadIdx.x; j < cols; j += 32) squares += (row[j] - mean) * (row[j] - mean);
  const float scale = 1.0f / sqrtf(Sum(squares) / cols + 1e-3f);
  for (int j = threadIdx.x; j < cols; j += 32) {
    y[(size_t)blockIdx.x * cols + j] = (row[j] - mean) * scale * gamma[j] + beta[j];
  }
}
