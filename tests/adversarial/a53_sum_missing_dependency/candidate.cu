/* assay-candidate
problem: "reduce_sum"
language: CUDA_CPP
label: "a53_sum_missing_dependency"
plan {
  workspaces { name: "work" bytes: "4 * ceil_div(n, 256)" }
  launches { kernel: "sum" grid: "ceil_div(n, 256)" block: "256" args: "x" args: "work" args: "y" args: "n" }
}
*/
// Two stages in one launch, and nothing between them.
extern "C" __global__ void sum(const float* x, float* work, float* y, int n) {
  __shared__ float partial[256];
  const int i = blockIdx.x * 256 + threadIdx.x;
  partial[threadIdx.x] = i < n ? x[i] : 0.0f;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) work[blockIdx.x] = partial[0];
  // The second stage begins without waiting for the other blocks.
  if (threadIdx.x != 0 || blockIdx.x != gridDim.x - 1) return;
  float sum = 0.0f;
  for (int b = 0; b < gridDim.x; ++b) sum += work[b];
  y[0] = sum;
}
