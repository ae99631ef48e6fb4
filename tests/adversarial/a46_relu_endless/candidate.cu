/* assay-candidate
problem: "relu"
language: CUDA_CPP
label: "a46_relu_endless"
plan {
  launches { kernel: "relu" grid: "1" block: "32" args: "x" args: "y" args: "n" }
}
*/
// Never ends.
extern "C" __global__ void relu(const float* x, float* y, int n) {
  unsigned turns = 0;
  while (n > 0) asm volatile("add.u32 %0, %0, 1;" : "+r"(turns));
  y[threadIdx.x] = x[threadIdx.x] + turns;
}
