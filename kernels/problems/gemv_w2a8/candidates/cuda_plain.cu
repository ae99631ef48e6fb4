/* assay-candidate
problem: "gemv_w2a8"
language: CUDA_CPP
label: "cuda_plain"
plan {
  launches {
    kernel: "gemv_w2a8"
    grid: "ceil_div(n, 64)"
    block: "64"
    args: "w_packed" args: "w_scale" args: "x" args: "x_scale" args: "y" args: "n" args: "k"
  }
}
*/
// One thread for each row, code after code.
extern "C" __global__ void gemv_w2a8(const unsigned char* w_packed, const float* w_scale,
                                     const signed char* x, const float* x_scale, float* y, int n,
                                     int k) {
  const int j = static_cast<int>(blockIdx.x * 64 + threadIdx.x);
  if (j >= n) return;
  const unsigned char* row = w_packed + static_cast<size_t>(j) * (k / 4);
  int sum = 0;
  for (int i = 0; i < k / 4; ++i) {
    const int codes = row[i];
    sum += ((codes & 3) - 1) * x[4 * i];
    sum += ((codes >> 2 & 3) - 1) * x[4 * i + 1];
    sum += ((codes >> 4 & 3) - 1) * x[4 * i + 2];
    sum += ((codes >> 6 & 3) - 1) * x[4 * i + 3];
  }
  y[j] = static_cast<float>(sum) * w_scale[j] * x_scale[0];
}
