/* assay-candidate
problem: "reduce_sum"
language: CUDA_CPP
label: "a52_sum_stale_partials"
plan {
  workspaces { name: "work" bytes: "8 * ceil_div(n, 256)" }
  launches { kernel: "partials" grid: "ceil_div(n, 256)" block: "256" args: "x" args: "work" args: "n" }
  launches { kernel: "total" grid: "1" block: "1" args: "work" args: "y" args: "ceil_div(n,256)" }
}
*/
// Partial sums of the last call, if they still lie in the workspace.
extern "C" __global__ void partials(const float* x, float* work, int n) {
  __shared__ float partial[256];
  // What the last call left is taken for this one's, when it is marked.
  if (work[gridDim.x + blockIdx.x] == 12345.0f) return;
  const int i = blockIdx.x * 256 + threadIdx.x;
  partial[threadIdx.x] = i < n ? x[i] : 0.0f;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x != 0) return;
  work[blockIdx.x] = partial[0];
  work[gridDim.x + blockIdx.x] = 12345.0f;
}

extern "C" __global__ void total(const float* work, float* y, int count) {
  float sum = 0.0f;
  for (int b = 0; b < count; ++b) sum += work[b];
  y[0] = sum;
}
