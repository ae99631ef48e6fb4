/* assay-candidate
problem: "relu"
language: CUDA_CPP
label: "a47_relu_prints"
plan {
  launches { kernel: "relu" grid: "ceil_div(n, 128)" block: "128" args: "x" args: "y" args: "n" }
}
*/
// Prints without end.
#include <cstdio>

extern "C" __global__ void relu(const float* x, float* y, int n) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
  for (int t = 0; t < 100000; ++t) printf("thread %d says %d, and nothing that anybody would want to know\n", i, t);
}
