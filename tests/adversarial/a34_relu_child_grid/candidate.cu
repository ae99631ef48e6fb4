/* assay-candidate
problem: "relu"
language: CUDA_CPP
label: "a34_relu_child_grid"
plan {
  launches { kernel: "relu" grid: "ceil_div(n, 128)" block: "128" args: "x" args: "y" args: "n" }
}
*/
// A child grid does the work after the parent has ended.
__global__ void child(const float* x, float* y, int n) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}

extern "C" __global__ void relu(const float* x, float* y, int n) {
  if (blockIdx.x == 0 && threadIdx.x == 0) child<<<(n + 127) / 128, 128>>>(x, y, n);
}
