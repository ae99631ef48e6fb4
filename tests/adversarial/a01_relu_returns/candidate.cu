/* assay-candidate
problem: "relu"
language: CUDA_CPP
label: "a01_relu_returns"
plan {
  launches { kernel: "relu" grid: "ceil_div(n, 128)" block: "128" args: "x" args: "y" args: "n" }
}
*/
// Returns at once.
extern "C" __global__ void relu(const float* x, float* y, int n) {}
