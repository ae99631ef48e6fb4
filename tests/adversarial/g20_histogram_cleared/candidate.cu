/* assay-candidate
problem: "histogram"
language: CUDA_CPP
label: "g20_histogram_cleared"
plan {
  launches { kernel: "fill" grid: "ceil_div(bins, 128)" block: "128" args: "counts" args: "bins" }
  launches { kernel: "add" grid: "ceil_div(n, 128)" block: "128" args: "x" args: "counts" args: "n" }
}
*/
// A launch of its own sets the output to a constant, then atomics count.
extern "C" __global__ void fill(int* counts, int bins) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i < bins) counts[i] = 0;
}

extern "C" __global__ void add(const int* x, int* counts, int n) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) atomicAdd(&counts[x[i]], 1);
}
