/* assay-candidate
problem: "reduce_sum"
language: CUDA_CPP
label: "g29_sum_waits_with_deadline"
plan {
  launches { kernel: "sum" grid: "2" block: "128" args: "x" args: "y" args: "n" }
}
*/
// Two blocks add half each. The first waits for the other's half, and stops instead of hanging for
// ever when that takes longer than any device's scheduler.
__device__ float half_sum;
__device__ int ready;

extern "C" __global__ void sum(const float* x, float* y, int n) {
  __shared__ float partial[128];
  const int middle = n / 2;
  const int first = blockIdx.x == 0 ? 0 : middle, last = blockIdx.x == 0 ? middle : n;
  float sum = 0.0f;
  for (int i = first + threadIdx.x; i < last; i += 128) sum += x[i];
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int half = 64; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 1) {
    half_sum = partial[0];
    __threadfence();
    atomicExch(&ready, 1);
    return;
  }
  const long long begin = clock64();
  while (atomicAdd(&ready, 0) == 0) {
    if (clock64() - begin > 2000000000ll) __trap();
  }
  __threadfence();
  y[0] = partial[0] + half_sum;
  ready = 0;
}
