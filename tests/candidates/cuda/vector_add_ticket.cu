/* assay-candidate
problem: "vector_add"
language: CUDA_CPP
plan {
  workspaces { name: "next" bytes: "4" }
  launches { kernel: "clear" grid: "1" block: "1" args: "next" }
  launches {
    kernel: "vector_add" grid: "ceil_div(n, 128)" block: "128"
    args: "a" args: "b" args: "c" args: "next" args: "n"
  }
}
*/
// Takes for granted that threads come in the order of their numbers.
extern "C" __global__ void clear(int* next) { *next = 0; }

extern "C" __global__ void vector_add(const float* a, const float* b, float* c, int* next, int n) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i >= n) return;
  c[atomicAdd(next, 1)] = a[i] + b[i];
}
