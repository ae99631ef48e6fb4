/* assay-candidate
problem: "relu"
language: CUDA_CPP
label: "a46_relu_endless"
plan {
  launches { kernel: "relu" grid: "1" block: "1024" args: "x" args: "y" args: "n" }
}
*/
// Never ends.
extern "C" __global__ void relu(const float* x, volatile float* y, int n) {
  while (true) y[threadIdx.x] = x[threadIdx.x];
}
