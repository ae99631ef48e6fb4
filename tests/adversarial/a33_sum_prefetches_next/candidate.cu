/* assay-candidate
problem: "reduce_sum"
language: CUDA_CPP
label: "a33_sum_prefetches_next"
plan {
  launches { kernel: "sum" grid: "1" block: "256" args: "x" args: "y" args: "n" }
}
*/
// Prefetches where the next call's input would lie.
extern "C" __global__ void sum(const float* x, float* y, int n) {
  __shared__ float partial[256];
  const size_t stride = (n + 63) / 64 * 64;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < n; i += 256) {
    sum += x[i];
    asm volatile("prefetch.global.L2 [%0];" ::"l"(x + stride + i));
  }
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) y[0] = partial[0];
}
