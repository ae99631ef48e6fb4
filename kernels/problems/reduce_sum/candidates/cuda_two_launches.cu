/* assay-candidate
problem: "reduce_sum"
language: CUDA_CPP
label: "cuda_two_launches"
parameters { name: "BLOCK" values: 256 values: 128 values: 512 }
parameters { name: "BLOCKS_MAX" values: 1024 values: 256 values: 512 values: 2048 }
plan {
  workspaces { name: "partial" bytes: "4 * min(BLOCKS_MAX, ceil_div(n, 4 * BLOCK))" }
  launches {
    kernel: "sum_blocks"
    grid: "min(BLOCKS_MAX, ceil_div(n, 4 * BLOCK))"
    block: "BLOCK"
    args: "x" args: "partial" args: "n"
  }
  launches {
    kernel: "sum_partials"
    grid: "1"
    block: "BLOCK"
    args: "partial" args: "y" args: "min(BLOCKS_MAX, ceil_div(n, 4 * BLOCK))"
  }
}
*/
// As many blocks as fill the device read 16 bytes an access; warps add by shuffles, blocks leave
// one partial sum each, and a second launch adds those.
static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block is whole warps");

// The sum over the block, in thread 0.
__device__ float BlockSum(float value) {
  __shared__ float of_warp[BLOCK / 32];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
#pragma unroll
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffffu, value, step);
  if (lane == 0) of_warp[warp] = value;
  __syncthreads();
  if (warp != 0) return 0.0f;
  value = lane < BLOCK / 32 ? of_warp[lane] : 0.0f;
#pragma unroll
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffffu, value, step);
  return value;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    sum_blocks(const float* __restrict__ x, float* __restrict__ partial, int n) {
  const int stride = static_cast<int>(gridDim.x) * BLOCK;
  const int start = static_cast<int>(blockIdx.x * BLOCK + threadIdx.x);
  const float4* vectors = reinterpret_cast<const float4*>(x);
  float even = 0.0f;
  float odd = 0.0f;
  for (int i = start; i < n / 4; i += stride) {
    const float4 four = vectors[i];
    even += four.x + four.y;
    odd += four.z + four.w;
  }
  const int tail = n / 4 * 4 + start;
  if (tail < n) even += x[tail];
  const float sum = BlockSum(even + odd);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    sum_partials(const float* __restrict__ partial, float* __restrict__ y, int count) {
  float value = 0.0f;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += BLOCK) value += partial[i];
  const float sum = BlockSum(value);
  if (threadIdx.x == 0) y[0] = sum;
}
