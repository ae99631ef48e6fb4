/* assay-candidate
problem: "reduce_sum"
language: CUDA_CPP
label: "g09_sum_kahan"
plan {
  launches { kernel: "sum" grid: "1" block: "32" args: "x" args: "y" args: "n" }
}
*/
// Compensated sums, then pairwise ones.
extern "C" __global__ void sum(const float* x, float* y, int n) {
  float sum = 0.0f;
  float lost = 0.0f;
  for (int i = threadIdx.x; i < n; i += 32) {
    const float term = __fsub_rn(x[i], lost);
    const float next = __fadd_rn(sum, term);
    lost = __fsub_rn(__fsub_rn(next, sum), term);
    sum = next;
  }
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  if (threadIdx.x == 0) y[0] = sum;
}
