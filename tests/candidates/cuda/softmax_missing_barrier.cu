/* assay-candidate
problem: "softmax"
language: CUDA_CPP
plan {
  launches {
    kernel: "softmax" grid: "rows" block: "256" args: "x" args: "y" args: "cols"
  }
}
*/
// One block a row. The slots of the warps are used twice, and the barrier between is missing.
__device__ float warp_sum(float v) {
  for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}
__device__ float warp_max(float v) {
  for (int d = 16; d > 0; d >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, d));
  return v;
}

extern "C" __global__ void softmax(const float* x, float* y, int cols) {
  __shared__ float slots[8];
  const float* row = x + (size_t)blockIdx.x * cols;
  const int warp = threadIdx.x / 32;
  float m = -3.402823466e38f;
  for (int j = threadIdx.x; j < cols; j += 256) m = fmaxf(m, row[j]);
  m = warp_max(m);
  if (threadIdx.x % 32 == 0) slots[warp] = m;
  __syncthreads();
  for (int w = 0; w < 8; ++w) m = fmaxf(m, slots[w]);
  float sum = 0.0f;
  for (int j = threadIdx.x; j < cols; j += 256) sum += expf(row[j] - m);
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) slots[warp] = sum;  // others may still read the maximum
  __syncthreads();
  sum = 0.0f;
  for (int w = 0; w < 8; ++w) sum += slots[w];
  for (int j = threadIdx.x; j < cols; j += 256) y[(size_t)blockIdx.x * cols + j] = expf(row[j] - m) / sum;
}
