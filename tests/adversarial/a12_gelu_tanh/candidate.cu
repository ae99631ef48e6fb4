/* assay-candidate
problem: "gelu"
language: CUDA_CPP
label: "a12_gelu_tanh"
plan {
  launches { kernel: "gelu" grid: "ceil_div(n, 128)" block: "128" args: "x" args: "y" args: "n" }
}
*/
// The tanh form where erf is asked for.
extern "C" __global__ void gelu(const float* x, float* y, int n) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i >= n) return;
  const float v = x[i];
  y[i] = 0.5f * v * (1.0f + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
}
