/* assay-candidate
problem: "histogram"
language: CUDA_CPP
label: "cuda_plain"
plan {
  launches {
    kernel: "clear"
    grid: "ceil_div(bins, 256)"
    block: "256"
    args: "counts" args: "bins"
  }
  launches {
    kernel: "histogram"
    grid: "ceil_div(n, 256)"
    block: "256"
    args: "x" args: "counts" args: "n"
  }
}
*/
// One thread and one atomic addition in global memory for each element.
extern "C" __global__ void clear(int* counts, int bins) {
  const int i = static_cast<int>(blockIdx.x * 256 + threadIdx.x);
  if (i < bins) counts[i] = 0;
}

extern "C" __global__ void histogram(const int* x, int* counts, int n) {
  const int i = static_cast<int>(blockIdx.x * 256 + threadIdx.x);
  if (i < n) atomicAdd(&counts[x[i]], 1);
}
