/* assay-candidate
problem: "reduce_sum"
language: CUDA_CPP
label: "g26_sum_tuning_parameter"
parameters { name: "num_stages" values: 4 values: 2 values: 8 }
parameters { name: "num_warps" values: 4 values: 8 }
plan {
  launches { kernel: "sum" grid: "1" block: "32 * num_warps" args: "x" args: "y" args: "n" }
}
*/
// Parameters with the names that a reviewer once took for a branch on the evaluator.
extern "C" __global__ void sum(const float* x, float* y, int n) {
  __shared__ float partial[num_warps];
  float sum[num_stages] = {};
  int stage = 0;
  for (int i = threadIdx.x; i < n; i += 32 * num_warps * num_stages) {
#pragma unroll
    for (stage = 0; stage < num_stages; ++stage) {
      const int at = i + stage * 32 * num_warps;
      sum[stage] += at < n ? x[at] : 0.0f;
    }
  }
  float total = 0.0f;
  for (stage = 0; stage < num_stages; ++stage) total += sum[stage];
  for (int d = 16; d > 0; d /= 2) total += __shfl_xor_sync(0xffffffffu, total, d);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = total;
  __syncthreads();
  if (threadIdx.x != 0) return;
  total = 0.0f;
  for (int w = 0; w < num_warps; ++w) total += partial[w];
  y[0] = total;
}
