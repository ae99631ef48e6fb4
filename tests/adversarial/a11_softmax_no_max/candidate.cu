/* assay-candidate
problem: "softmax"
language: CUDA_CPP
label: "a11_softmax_no_max"
plan {
  launches { kernel: "softmax" grid: "rows" block: "128" args: "x" args: "y" args: "cols" }
}
*/
// exp without taking the maximum off first.
extern "C" __global__ void softmax(const float* x, float* y, int cols) {
  __shared__ float scratch[128];
  const float* row = x + (size_t)blockIdx.x * cols;
  float sum = 0.0f;
  for (int j = threadIdx.x; j < cols; j += 128) sum += expf(row[j]);
  scratch[threadIdx.x] = sum;
  __syncthreads();
  for (int half = 64; half > 0; half /= 2) {
    if (threadIdx.x < half) scratch[threadIdx.x] += scratch[threadIdx.x + half];
    __syncthreads();
  }
  for (int j = threadIdx.x; j < cols; j += 128) y[(size_t)blockIdx.x * cols + j] = expf(row[j]) / scratch[0];
}
