/* assay-candidate
problem: "transpose"
language: CUDA_CPP
label: "cuda_plain"
plan {
  launches {
    kernel: "transpose"
    grid: "ceil_div(cols, 32)" grid: "min(ceil_div(rows, 8), 65535)"
    block: "32" block: "8"
    args: "x" args: "y" args: "rows" args: "cols"
  }
}
*/
// Reads along rows, writes along columns.
extern "C" __global__ void transpose(const float* x, float* y, int rows, int cols) {
  const size_t j = blockIdx.x * 32 + threadIdx.x;
  if (j >= cols) return;
  for (size_t i = blockIdx.y * 8 + threadIdx.y; i < rows; i += gridDim.y * 8) {
    y[j * rows + i] = x[i * cols + j];
  }
}
