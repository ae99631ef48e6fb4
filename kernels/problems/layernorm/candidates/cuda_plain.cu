/* assay-candidate
problem: "layernorm"
language: CUDA_CPP
label: "cuda_plain"
plan {
  launches {
    kernel: "layernorm"
    grid: "rows"
    block: "256"
    args: "x" args: "gamma" args: "beta" args: "y" args: "cols"
  }
}
*/
// One block for each row, three passes over it: mean, variance of the deviations, result.
__device__ float BlockSum(float value, float* scratch) {
  const int thread = static_cast<int>(threadIdx.x);
  scratch[thread] = value;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (thread < half) scratch[thread] += scratch[thread + half];
    __syncthreads();
  }
  const float sum = scratch[0];
  __syncthreads();  // scratch may be written again
  return sum;
}

extern "C" __global__ void layernorm(const float* x, const float* gamma, const float* beta,
                                     float* y, int cols) {
  __shared__ float scratch[256];
  const int thread = static_cast<int>(threadIdx.x);
  const float* row = x + static_cast<size_t>(blockIdx.x) * cols;
  float* out = y + static_cast<size_t>(blockIdx.x) * cols;

  float sum = 0.0f;
  for (int j = thread; j < cols; j += 256) sum += row[j];
  const float mean = BlockSum(sum, scratch) / static_cast<float>(cols);
  float squares = 0.0f;
  for (int j = thread; j < cols; j += 256) squares += (row[j] - mean) * (row[j] - mean);
  const float variance = BlockSum(squares, scratch) / static_cast<float>(cols);
  const float scale = 1.0f / sqrtf(variance + 1e-5f);
  for (int j = thread; j < cols; j += 256) out[j] = (row[j] - mean) * scale * gamma[j] + beta[j];
}
