/* assay-candidate
problem: "reduce_sum"
language: CUDA_CPP
plan {
  launches { kernel: "clear" grid: "1" block: "1" args: "y" }
  launches { kernel: "add" grid: "ceil_div(n, 128)" block: "128" args: "x" args: "y" args: "n" }
}
*/
// Right in any order, and never twice the same bits.
extern "C" __global__ void clear(float* y) { y[0] = 0; }

extern "C" __global__ void add(const float* x, float* y, int n) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) atomicAdd(y, x[i]);
}
