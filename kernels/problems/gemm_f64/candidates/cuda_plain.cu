/* assay-candidate
problem: "gemm_f64"
language: CUDA_CPP
label: "cuda_plain"
plan {
  launches {
    kernel: "gemm_f64"
    grid: "ceil_div(n, 16)" grid: "ceil_div(m, 16)"
    block: "16" block: "16"
    args: "a" args: "b" args: "c" args: "m" args: "n" args: "k"
  }
}
*/
// One thread for each element of c.
extern "C" __global__ void gemm_f64(const double* a, const double* b, double* c, int m, int n,
                                    int k) {
  const int j = static_cast<int>(blockIdx.x * 16 + threadIdx.x);
  const int i = static_cast<int>(blockIdx.y * 16 + threadIdx.y);
  if (i >= m || j >= n) return;
  double sum = 0.0;
  for (int p = 0; p < k; ++p) {
    sum += a[static_cast<size_t>(i) * k + p] * b[static_cast<size_t>(p) * n + j];
  }
  c[static_cast<size_t>(i) * n + j] = sum;
}
