/* assay-candidate
problem: "vector_add"
language: CUDA_CPP
plan {
  launches { kernel: "vector_addd" grid: "ceil_div(n, 128)" block: "128" args: "a" args: "b" args: "c" args: "n"  }
}
*/
extern "C" __global__ void vector_add(const float* a, const float* b, float* c, long long n) {
  const long long i = blockIdx.x * 128LL + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
