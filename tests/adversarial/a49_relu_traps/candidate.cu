/* assay-candidate
problem: "relu"
language: CUDA_CPP
label: "a49_relu_traps"
plan {
  launches { kernel: "relu" grid: "ceil_div(n, 128)" block: "128" args: "x" args: "y" args: "n" }
}
*/
// Ends after the first block and hopes that the output looks done.
extern "C" __global__ void relu(const float* x, float* y, int n) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
  if (blockIdx.x == 1) asm volatile("trap;");
}
