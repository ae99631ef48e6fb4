/* assay-candidate
problem: "relu"
language: CUDA_CPP
label: "g11_relu_masked_tiles"
plan {
  launches { kernel: "relu" grid: "ceil_div(n, 128)" block: "128" args: "x" args: "y" args: "n" }
}
*/
// A tile in which nothing is positive needs no more than zeros.
extern "C" __global__ void relu(const float* x, float* y, int n) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  const float v = i < n ? x[i] : 0.0f;
  const bool is_any = __syncthreads_or(v > 0.0f) != 0;
  if (i >= n) return;
  if (!is_any) {
    y[i] = 0.0f;
    return;
  }
  y[i] = v > 0.0f ? v : 0.0f;
}
