/* assay-candidate
problem: "gelu"
language: CUDA_CPP
label: "cuda_plain"
plan {
  launches {
    kernel: "gelu"
    grid: "ceil_div(n, 256)"
    block: "256"
    args: "x" args: "y" args: "n"
  }
}
*/
// The definition, one thread for each element.
extern "C" __global__ void gelu(const float* x, float* y, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) y[i] = 0.5f * x[i] * (1.0f + erff(x[i] * 0.70710678f));
}
