/* assay-candidate
problem: "scan"
language: CUDA_CPP
label: "g19_scan_in_place"
plan {
  launches { kernel: "copy" grid: "ceil_div(n, 128)" block: "128" args: "x" args: "y" args: "n" }
  launches { kernel: "scan" grid: "1" block: "1024" args: "y" args: "n" }
}
*/
// Copies its input to the output and scans there.
extern "C" __global__ void copy(const float* x, float* y, int n) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) y[i] = x[i];
}

// Tiles of 1024, each in place, with the sum of those before.
extern "C" __global__ void scan(float* y, int n) {
  __shared__ float total;
  if (threadIdx.x == 0) total = 0.0f;
  __syncthreads();
  for (int begin = 0; begin < n; begin += 1024) {
    const int i = begin + threadIdx.x;
    for (int step = 1; step < 1024; step *= 2) {
      const float left = threadIdx.x >= step && i < n ? y[i - step] : 0.0f;
      __syncthreads();
      if (i < n) y[i] += left;
      __syncthreads();
    }
    const float before = total;
    __syncthreads();
    if (i < n) y[i] += before;
    if (i == min(n, begin + 1024) - 1) total = y[i];
    __syncthreads();
  }
}
