/* assay-candidate
problem: "reduce_sum"
language: CUDA_CPP
label: "a54_sum_unjoined_branch"
plan {
  workspaces { name: "half" bytes: "4" }
  launches { kernel: "sum" grid: "1" block: "1" args: "x" args: "y" args: "n / 2" }
  launches { kernel: "sum" grid: "1" block: "1" args: "x" args: "half" args: "n" branch: "second" }
}
*/
// The second branch goes on when the first has ended, and nothing joins them.
extern "C" __global__ void sum(const float* x, float* y, int n) {
  float sum = 0.0f;
  for (int i = 0; i < n; ++i) sum += x[i];
  y[0] = sum;
}
