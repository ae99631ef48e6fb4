/* assay-candidate
problem: "row_mean"
language: CUDA_CPP
label: "g15_row_mean_reads_padding"
plan {
  launches { kernel: "row_mean" grid: "rows" block: "32" args: "x" args: "y" args: "cols" args: "pitch" }
}
*/
// Vectors of four past the logical end of a row, into its declared padding.
extern "C" __global__ void row_mean(const float* x, float* y, int cols, int pitch) {
  const float* row = x + (size_t)blockIdx.x * pitch;
  float sum = 0.0f;
  for (int q = threadIdx.x; 4 * q < cols; q += 32) {
    const float4 v = *reinterpret_cast<const float4*>(row + 4 * q);
    const int left = cols - 4 * q;
    sum += v.x + (left > 1 ? v.y : 0.0f) + (left > 2 ? v.z : 0.0f) + (left > 3 ? v.w : 0.0f);
  }
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  if (threadIdx.x == 0) y[blockIdx.x] = sum / static_cast<float>(cols);
}
