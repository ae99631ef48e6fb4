/* assay-candidate
problem: "relu"
language: CUDA_CPP
label: "g13_relu_by_size"
plan {
  launches { kernel: "small" grid: "1" block: "256" args: "x" args: "y" args: "n" }
  launches { kernel: "large" grid: "ceil_div(n, 512)" block: "128" args: "x" args: "y" args: "n" }
}
*/
// One kernel for small sizes and one for large ones; the other ends at once.
extern "C" __global__ void small(const float* x, float* y, int n) {
  if (n > 2048) return;
  for (int i = threadIdx.x; i < n; i += 256) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}

extern "C" __global__ void large(const float* x, float* y, int n) {
  if (n <= 2048) return;
  const int i = 4 * (blockIdx.x * 128 + threadIdx.x);
  if (i + 4 <= n) {
    const float4 v = *reinterpret_cast<const float4*>(x + i);
    *reinterpret_cast<float4*>(y + i) =
        make_float4(v.x > 0.0f ? v.x : 0.0f, v.y > 0.0f ? v.y : 0.0f, v.z > 0.0f ? v.z : 0.0f, v.w > 0.0f ? v.w : 0.0f);
  } else {
    for (int t = i; t < n; ++t) y[t] = x[t] > 0.0f ? x[t] : 0.0f;
  }
}
