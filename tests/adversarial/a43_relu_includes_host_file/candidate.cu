/* assay-candidate
problem: "relu"
language: CUDA_CPP
label: "a43_relu_includes_host_file"
plan {
  launches { kernel: "relu" grid: "ceil_div(n, 128)" block: "128" args: "x" args: "y" args: "n" }
}
*/
// The compiler would print what it finds.
#include "/etc/hostname"
extern "C" __global__ void relu(const float* x, float* y, int n) {}
