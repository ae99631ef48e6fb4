/* assay-candidate
problem: "relu"
language: CUDA_CPP
label: "a35_relu_dependents_early"
plan {
  launches { kernel: "relu" grid: "ceil_div(n, 128)" block: "128" args: "x" args: "y" args: "n" }
}
*/
// Lets dependent launches go before it has written its output.
extern "C" __global__ void relu(const float* x, float* y, int n) {
  asm volatile("griddepcontrol.launch_dependents;");
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}
