/* assay-candidate
problem: "reduce_sum"
language: CUDA_CPP
label: "a32_sum_evict_last"
plan {
  launches { kernel: "sum" grid: "1" block: "256" args: "x" args: "y" args: "n" }
}
*/
// Asks the L2 cache to keep its input beyond the call.
__device__ float Load(const float* at) {
  float v;
  asm volatile("{ .reg .b64 keep; createpolicy.fractional.L2::evict_last.b64 keep, 1.0;"
               " ld.global.L2::cache_hint.f32 %0, [%1], keep; }" : "=f"(v) : "l"(at));
  return v;
}

extern "C" __global__ void sum(const float* x, float* y, int n) {
  __shared__ float partial[256];
  float sum = 0.0f;
  for (int i = threadIdx.x; i < n; i += 256) sum += Load(x + i);
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) y[0] = partial[0];
}
