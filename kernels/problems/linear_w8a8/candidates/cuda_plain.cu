/* assay-candidate
problem: "linear_w8a8"
language: CUDA_CPP
label: "cuda_plain"
plan {
  launches {
    kernel: "linear_w8a8"
    grid: "ceil_div(n, 16)" grid: "ceil_div(m, 16)"
    block: "16" block: "16"
    args: "x" args: "w" args: "x_scale" args: "w_scale" args: "bias" args: "acc" args: "y"
    args: "m" args: "n" args: "k"
  }
}
*/
// One thread for each output.
extern "C" __global__ void linear_w8a8(const signed char* x, const signed char* w,
                                       const float* x_scale, const float* w_scale,
                                       const float* bias, int* acc, float* y, int m, int n, int k) {
  const int j = static_cast<int>(blockIdx.x * 16 + threadIdx.x);
  const int i = static_cast<int>(blockIdx.y * 16 + threadIdx.y);
  if (i >= m || j >= n) return;
  const signed char* x_row = x + static_cast<size_t>(i) * k;
  const signed char* w_row = w + static_cast<size_t>(j) * k;
  int sum = 0;
  for (int p = 0; p < k; ++p) sum += static_cast<int>(x_row[p]) * static_cast<int>(w_row[p]);
  const size_t out = static_cast<size_t>(i) * n + j;
  acc[out] = sum;
  y[out] = static_cast<float>(sum) * x_scale[i] * w_scale[j] + bias[j];
}
