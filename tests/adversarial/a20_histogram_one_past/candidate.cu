/* assay-candidate
problem: "histogram"
language: CUDA_CPP
label: "a20_histogram_one_past"
plan {
  launches { kernel: "clear" grid: "ceil_div(bins, 128)" block: "128" args: "counts" args: "bins" }
  launches { kernel: "histogram" grid: "ceil_div(n, 128)" block: "128" args: "x" args: "counts" args: "n" args: "bins" }
}
*/
// The histogram is right, and a word beyond it is written.
extern "C" __global__ void clear(int* counts, int bins) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i < bins) counts[i] = 0;
}

extern "C" __global__ void histogram(const int* x, int* counts, int n, int bins) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) atomicAdd(&counts[x[i]], 1);
  if (i == 0) counts[bins] = n;
}
