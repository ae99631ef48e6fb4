/* assay-candidate
problem: "softmax"
language: CUDA_CPP
label: "a37_softmax_missing_barrier"
plan {
  launches { kernel: "softmax" grid: "rows" block: "128" args: "x" args: "y" args: "cols" }
}
*/
// A barrier is missing where shared memory is used again. It mostly goes well.
extern "C" __global__ void softmax(const float* x, float* y, int cols) {
  __shared__ float scratch[128];
  const float* row = x + (size_t)blockIdx.x * cols;
  float largest = row[0];
  for (int j = threadIdx.x; j < cols; j += 128) largest = fmaxf(largest, row[j]);
  scratch[threadIdx.x] = largest;
  __syncthreads();
  for (int half = 64; half > 0; half /= 2) {
    if (threadIdx.x < half) scratch[threadIdx.x] = fmaxf(scratch[threadIdx.x], scratch[threadIdx.x + half]);
    __syncthreads();
  }
  largest = scratch[0];
  float sum = 0.0f;
  for (int j = threadIdx.x; j < cols; j += 128) sum += expf(row[j] - largest);
  scratch[threadIdx.x] = sum;  // others may not have read the maximum yet
  __syncthreads();
  for (int half = 64; half > 0; half /= 2) {
    if (threadIdx.x < half) scratch[threadIdx.x] += scratch[threadIdx.x + half];
    __syncthreads();
  }
  for (int j = threadIdx.x; j < cols; j += 128) y[(size_t)blockIdx.x * cols + j] = expf(row[j] - largest) / scratch[0];
}
