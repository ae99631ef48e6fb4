/* assay-candidate
problem: "relu"
language: CUDA_CPP
label: "a31_relu_looks_ahead"
plan {
  launches { kernel: "relu" grid: "ceil_div(n, 128)" block: "128" args: "x" args: "y" args: "n" }
}
*/
// Computes what would be the next seven calls if inputs lay one after the other.
extern "C" __global__ void relu(const float* x, float* y, int n) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i >= n) return;
  const size_t stride = (n + 63) / 64 * 64;
  for (int slot = 0; slot < 8; ++slot) {
    const float v = x[slot * stride + i];
    y[slot * stride + i] = v > 0.0f ? v : 0.0f;
  }
}
