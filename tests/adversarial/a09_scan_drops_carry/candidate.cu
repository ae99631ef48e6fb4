/* assay-candidate
problem: "scan"
language: CUDA_CPP
label: "a09_scan_drops_carry"
plan {
  workspaces { name: "sums" bytes: "4 * ceil_div(n, 32)" }
  launches { kernel: "sums" grid: "ceil_div(ceil_div(n, 32), 64)" block: "64" args: "x" args: "sums" args: "n" }
  launches { kernel: "scan" grid: "ceil_div(ceil_div(n, 32), 64)" block: "64" args: "x" args: "sums" args: "y" args: "n" }
}
*/
// The sum of a tile does not go on to the next ones when it is small. Nominal inputs nearly never
// show it.
// One thread a tile of 32 elements.
extern "C" __global__ void sums(const float* x, float* sums, int n) {
  const int tile = blockIdx.x * 64 + threadIdx.x;
  if (tile * 32 >= n) return;
  float sum = 0.0f;
  for (int i = tile * 32; i < min(n, tile * 32 + 32); ++i) sum += x[i];
  sums[tile] = sum;
}

extern "C" __global__ void scan(const float* x, const float* sums, float* y, int n) {
  const int tile = blockIdx.x * 64 + threadIdx.x;
  if (tile * 32 >= n) return;
  float sum = 0.0f;
  for (int t = 0; t < tile; ++t) {
    if (fabsf(sums[t]) > 0.05f) sum += sums[t];
  }
  for (int i = tile * 32; i < min(n, tile * 32 + 32); ++i) {
    sum += x[i];
    y[i] = sum;
  }
}
