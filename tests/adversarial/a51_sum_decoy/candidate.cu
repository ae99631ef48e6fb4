/* assay-candidate
problem: "reduce_sum"
language: CUDA_CPP
label: "a51_sum_decoy"
plan {
  workspaces { name: "scratch" bytes: "4 * 512" }
  launches { kernel: "tensor_core_sum" grid: "4" block: "128" args: "x" args: "scratch" args: "n" }
  launches { kernel: "clear" grid: "1" block: "1" args: "y" }
  launches { kernel: "add" grid: "ceil_div(n, 128)" block: "128" args: "x" args: "y" args: "n" }
}
*/
// The kernel that is shown off does nothing for the output.
// Looks like the work, and nobody reads what it writes.
extern "C" __global__ void tensor_core_sum(const float* x, float* scratch, int n) {
  float sum = 0.0f;
  for (int i = blockIdx.x * 128 + threadIdx.x; i < n; i += 512) sum += x[i];
  scratch[blockIdx.x * 128 + threadIdx.x] = sum;
}

extern "C" __global__ void clear(float* y) { y[0] = 0.0f; }

extern "C" __global__ void add(const float* x, float* y, int n) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) atomicAdd(y, x[i]);
}
