/* assay-candidate
problem: "vector_add"
language: CUDA_CPP
plan {
  launches { kernel: "vector_add" grid: "ceil_div(n, 128)" block: "128" args: "a" args: "b" args: "c" args: "n" }
}
*/
#include <cuda_runtime.h>

extern "C" __global__ void vector_add(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

void solve(const float* a, const float* b, float* c, int n) {
  vector_add<<<(n + 127) / 128, 128>>>(a, b, c, n);
  cudaDeviceSynchronize();
}
