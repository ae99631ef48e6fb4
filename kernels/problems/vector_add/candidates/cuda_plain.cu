/* assay-candidate
problem: "vector_add"
language: CUDA_CPP
label: "cuda_plain"
plan {
  launches {
    kernel: "vector_add"
    grid: "ceil_div(n, 256)"
    block: "256"
    args: "a" args: "b" args: "c" args: "n"
  }
}
*/
// One thread for each element.
extern "C" __global__ void vector_add(const float* a, const float* b, float* c, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) c[i] = a[i] + b[i];
}
