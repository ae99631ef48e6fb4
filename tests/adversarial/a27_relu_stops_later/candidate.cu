/* assay-candidate
problem: "relu"
language: CUDA_CPP
label: "a27_relu_stops_later"
plan {
  launches { kernel: "relu" grid: "ceil_div(n, 128)" block: "128" args: "x" args: "y" args: "n" }
}
*/
// Works ten times.
__device__ int calls[8192];

extern "C" __global__ void relu(const float* x, float* y, int n) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i >= n) return;
  if (i < 8192 && ++calls[i] > 10) return;
  y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}
