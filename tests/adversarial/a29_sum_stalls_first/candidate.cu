/* assay-candidate
problem: "reduce_sum"
language: CUDA_CPP
label: "a29_sum_stalls_first"
plan {
  launches { kernel: "sum" grid: "1" block: "256" args: "x" args: "y" args: "n" }
}
*/
// Stalls in its first three calls, so that whoever plans repetitions by them plans few.
__device__ int calls;

extern "C" __global__ void sum(const float* x, float* y, int n) {
  __shared__ float partial[256];
  if (threadIdx.x == 0) {
    if (calls < 3) {
      const long long start = clock64();
      while (clock64() - start < 60000) {
      }
    }
    ++calls;
  }
  float sum = 0.0f;
  for (int i = threadIdx.x; i < n; i += 256) sum += x[i];
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) y[0] = partial[0];
}
