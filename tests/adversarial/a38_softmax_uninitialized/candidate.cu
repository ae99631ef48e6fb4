/* assay-candidate
problem: "softmax"
language: CUDA_CPP
label: "a38_softmax_uninitialized"
plan {
  launches { kernel: "softmax" grid: "rows" block: "128" args: "x" args: "y" args: "cols" }
}
*/
// Gives what an earlier kernel left in shared memory.
extern "C" __global__ void softmax(const float* x, float* y, int cols) {
  __shared__ float residue[1024];
  for (int j = threadIdx.x; j < cols; j += 128) y[(size_t)blockIdx.x * cols + j] = residue[j % 1024];
}
