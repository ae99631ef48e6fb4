/* assay-candidate
problem: "matmul_row_sum"
language: CUDA_CPP
label: "g05_matmul_sum_fused"
plan {
  workspaces { name: "sums" bytes: "4 * k" }
  launches { kernel: "sum_b" grid: "ceil_div(k, 32)" block: "32" args: "b" args: "sums" args: "n" args: "k" }
  launches { kernel: "rows" grid: "ceil_div(m, 32)" block: "32" args: "a" args: "sums" args: "s" args: "m" args: "k" }
}
*/
// The sum of a row of a b is the row of a times the sums of the rows of b: no product is formed.
extern "C" __global__ void sum_b(const float* b, float* sums, int n, int k) {
  const int p = blockIdx.x * 32 + threadIdx.x;
  if (p >= k) return;
  float sum = 0.0f;
  for (int j = 0; j < n; ++j) sum += b[(size_t)p * n + j];
  sums[p] = sum;
}

extern "C" __global__ void rows(const float* a, const float* sums, float* s, int m, int k) {
  const int i = blockIdx.x * 32 + threadIdx.x;
  if (i >= m) return;
  float sum = 0.0f;
  for (int p = 0; p < k; ++p) sum += a[(size_t)i * k + p] * sums[p];
  s[i] = sum;
}
