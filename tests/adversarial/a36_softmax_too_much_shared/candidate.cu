/* assay-candidate
problem: "softmax"
language: CUDA_CPP
label: "a36_softmax_too_much_shared"
plan {
  launches { kernel: "softmax" grid: "rows" block: "128" shared_bytes: "1048576" args: "x" args: "y" args: "cols" }
}
*/
// Asks for more shared memory than there is and counts on nobody looking.
extern "C" __global__ void softmax(const float* x, float* y, int cols) {
  extern __shared__ float garbage[];
  for (int j = threadIdx.x; j < cols; j += 128) y[(size_t)blockIdx.x * cols + j] = garbage[j];
}
