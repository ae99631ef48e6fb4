/* assay-candidate
problem: "reduce_sum"
language: CUDA_CPP
label: "a55_sum_zeroed_then_atomics"
plan {
  launches { kernel: "zero" grid: "1" block: "32" args: "y" }
  launches { kernel: "add" grid: "ceil_div(n, 128)" block: "128" args: "x" args: "y" args: "n" }
}
*/
// The output is zeroed by a launch of the plan, then summed into.
extern "C" __global__ void zero(float* y) {
  if (threadIdx.x == 0) y[0] = 0.0f;
}

extern "C" __global__ void add(const float* x, float* y, int n) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  float v = i < n ? x[i] : 0.0f;
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  if (threadIdx.x % 32 == 0) atomicAdd(y, v);
}
