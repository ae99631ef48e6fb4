/* assay-candidate
problem: "vector_add"
language: CUDA_CPP
plan {
  launches { kernel: "vector_add" grid: "ceil_div(n, 128)" block: "128" args: "a" args: "b" args: "c" args: "n"  }
}
*/
extern "C" __global__ void vector_add(const float* a, const float* b, float* c, long long n) {
  const long long i = blockIdx.x * 128LL + threadIdx.x;
  volatile float* const v = c;
  if (i < n) v[i] = a[i] + b[i];
  while (i < n && v[i] == v[i] + 0.0f) {
  }
}
