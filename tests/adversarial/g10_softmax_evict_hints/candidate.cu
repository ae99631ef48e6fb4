/* assay-candidate
problem: "softmax"
language: CUDA_CPP
label: "g10_softmax_evict_hints"
plan {
  launches { kernel: "softmax" grid: "rows" block: "128" args: "x" args: "y" args: "cols" }
}
*/
// A row is read three times: it asks the cache to keep it until the last.
__device__ float Keep(const float* at) {
  float v;
  asm volatile("ld.global.L1::evict_last.f32 %0, [%1];" : "=f"(v) : "l"(at));
  return v;
}

__device__ float Last(const float* at) {
  float v;
  asm volatile("ld.global.L1::evict_first.f32 %0, [%1];" : "=f"(v) : "l"(at));
  return v;
}

extern "C" __global__ void softmax(const float* x, float* y, int cols) {
  __shared__ float scratch[128];
  const float* row = x + (size_t)blockIdx.x * cols;
  float largest = Keep(row);
  for (int j = threadIdx.x; j < cols; j += 128) largest = fmaxf(largest, Keep(row + j));
  scratch[threadIdx.x] = largest;
  __syncthreads();
  for (int half = 64; half > 0; half /= 2) {
    if (threadIdx.x < half) scratch[threadIdx.x] = fmaxf(scratch[threadIdx.x], scratch[threadIdx.x + half]);
    __syncthreads();
  }
  largest = scratch[0];
  __syncthreads();
  float sum = 0.0f;
  for (int j = threadIdx.x; j < cols; j += 128) sum += expf(Keep(row + j) - largest);
  scratch[threadIdx.x] = sum;
  __syncthreads();
  for (int half = 64; half > 0; half /= 2) {
    if (threadIdx.x < half) scratch[threadIdx.x] += scratch[threadIdx.x + half];
    __syncthreads();
  }
  for (int j = threadIdx.x; j < cols; j += 128) y[(size_t)blockIdx.x * cols + j] = expf(Last(row + j) - largest) / scratch[0];
}
