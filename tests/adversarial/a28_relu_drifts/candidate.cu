/* assay-candidate
problem: "relu"
language: CUDA_CPP
label: "a28_relu_drifts"
plan {
  launches { kernel: "relu" grid: "ceil_div(n, 128)" block: "128" args: "x" args: "y" args: "n" }
}
*/
// One element goes wrong after ten calls.
__device__ int calls;

extern "C" __global__ void relu(const float* x, float* y, int n) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i >= n) return;
  float v = x[i] > 0.0f ? x[i] : 0.0f;
  if (i == 0 && ++calls > 10) v += 1.0f;
  y[i] = v;
}
