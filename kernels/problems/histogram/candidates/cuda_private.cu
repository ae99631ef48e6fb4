/* assay-candidate
problem: "histogram"
language: CUDA_CPP
label: "cuda_private"
parameters { name: "BLOCK" values: 256 values: 128 values: 512 }
parameters { name: "BLOCKS_MAX" values: 256 values: 128 values: 512 values: 1024 }
plan {
  launches {
    kernel: "clear"
    grid: "ceil_div(bins, BLOCK)"
    block: "BLOCK"
    args: "counts" args: "bins"
  }
  launches {
    kernel: "histogram"
    grid: "min(BLOCKS_MAX, ceil_div(n, 4 * BLOCK))"
    block: "BLOCK"
    shared_bytes: "4 * min(bins, 8192)"
    args: "x" args: "counts" args: "n" args: "min(bins, 8192)"
  }
}
*/
// A block counts in shared memory, where atomic additions are fast, and adds what it found to the
// global counters once. Elements beyond the first 8192 bins are counted in global memory: they
// seldom meet.
extern "C" __global__ void __launch_bounds__(BLOCK) clear(int* counts, int bins) {
  const int i = static_cast<int>(blockIdx.x * BLOCK + threadIdx.x);
  if (i < bins) counts[i] = 0;
}

__device__ void Count(int bin, int* own, int own_bins, int* counts) {
  if (bin < own_bins) {
    atomicAdd(own + bin, 1);
  } else {
    atomicAdd(counts + bin, 1);
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    histogram(const int* __restrict__ x, int* counts, int n, int own_bins) {
  extern __shared__ int own[];
  const int thread = static_cast<int>(threadIdx.x);
  for (int bin = thread; bin < own_bins; bin += BLOCK) own[bin] = 0;
  __syncthreads();

  const int stride = static_cast<int>(gridDim.x) * BLOCK;
  const int start = static_cast<int>(blockIdx.x) * BLOCK + thread;
  for (int i = start; i < n / 4; i += stride) {
    const int4 four = reinterpret_cast<const int4*>(x)[i];
    Count(four.x, own, own_bins, counts);
    Count(four.y, own, own_bins, counts);
    Count(four.z, own, own_bins, counts);
    Count(four.w, own, own_bins, counts);
  }
  const int tail = n / 4 * 4 + start;
  if (tail < n) Count(x[tail], own, own_bins, counts);
  __syncthreads();

  for (int bin = thread; bin < own_bins; bin += BLOCK) {
    const int count = own[bin];
    if (count != 0) atomicAdd(&counts[bin], count);
  }
}
