/* assay-candidate
problem: "scan"
language: CUDA_CPP
label: "cuda_plain"
plan {
  workspaces { name: "sums" bytes: "4 * ceil_div(n, 1024)" }
  launches {
    kernel: "scan_blocks"
    grid: "ceil_div(n, 1024)"
    block: "1024"
    args: "x" args: "y" args: "sums" args: "n"
  }
  launches {
    kernel: "scan_sums"
    grid: "1"
    block: "1024"
    args: "sums" args: "ceil_div(n, 1024)"
  }
  launches {
    kernel: "add_sums"
    grid: "ceil_div(n, 1024)"
    block: "1024"
    args: "y" args: "sums" args: "n"
  }
}
*/
// Three launches: prefix sums of blocks of 1024 elements, prefix sums of the blocks' sums by one
// block, and what lies before a block is added to its elements.
constexpr int kBlock = 1024;

// The inclusive prefix sum over the block; every step adds what stands `step` places to the left.
__device__ float BlockScan(float value, float* scratch) {
  const int thread = static_cast<int>(threadIdx.x);
  scratch[thread] = value;
  __syncthreads();
  for (int step = 1; step < kBlock; step *= 2) {
    const float left = thread >= step ? scratch[thread - step] : 0.0f;
    __syncthreads();
    scratch[thread] += left;
    __syncthreads();
  }
  return scratch[thread];
}

extern "C" __global__ void scan_blocks(const float* x, float* y, float* sums, int n) {
  __shared__ float scratch[kBlock];
  const int i = static_cast<int>(blockIdx.x * kBlock + threadIdx.x);
  const float sum = BlockScan(i < n ? x[i] : 0.0f, scratch);
  if (i < n) y[i] = sum;
  if (threadIdx.x == kBlock - 1) sums[blockIdx.x] = sum;
}

extern "C" __global__ void scan_sums(float* sums, int count) {
  __shared__ float scratch[kBlock];
  float before = 0.0f;
  for (int first = 0; first < count; first += kBlock) {
    const int i = first + static_cast<int>(threadIdx.x);
    const float sum = before + BlockScan(i < count ? sums[i] : 0.0f, scratch);
    if (i < count) sums[i] = sum;
    before += scratch[kBlock - 1];
    __syncthreads();  // scratch is written again
  }
}

extern "C" __global__ void add_sums(float* y, const float* sums, int n) {
  const int i = static_cast<int>(blockIdx.x * kBlock + threadIdx.x);
  if (blockIdx.x > 0 && i < n) y[i] += sums[blockIdx.x - 1];
}
