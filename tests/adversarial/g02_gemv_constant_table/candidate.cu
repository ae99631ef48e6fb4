/* assay-candidate
problem: "gemv_w2a8"
language: CUDA_CPP
label: "g02_gemv_constant_table"
plan {
  launches { kernel: "gemv" grid: "ceil_div(n, 32)" block: "32" args: "w_packed" args: "w_scale" args: "x" args: "x_scale" args: "y" args: "n" args: "k" }
}
*/
// Looks up the weights of two codes at a time in a constant table.
// Weights of the two codes in four bits.
__constant__ signed char kPair[16][2] = {{-1, -1}, {0, -1}, {1, -1}, {2, -1}, {-1, 0}, {0, 0}, {1, 0}, {2, 0},
                                         {-1, 1},  {0, 1},  {1, 1},  {2, 1},  {-1, 2}, {0, 2}, {1, 2}, {2, 2}};

extern "C" __global__ void gemv(const unsigned char* w, const float* w_scale, const signed char* x, const float* x_scale, float* y,
                                int n, int k) {
  const int r = blockIdx.x * 32 + threadIdx.x;
  if (r >= n) return;
  int sum = 0;
  for (int q = 0; q < k / 4; ++q) {
    const int byte = w[(size_t)r * (k / 4) + q];
    const signed char* low = kPair[byte & 15];
    const signed char* high = kPair[byte >> 4];
    sum += low[0] * x[4 * q] + low[1] * x[4 * q + 1] + high[0] * x[4 * q + 2] + high[1] * x[4 * q + 3];
  }
  y[r] = w_scale[r] * x_scale[0] * static_cast<float>(sum);
}
