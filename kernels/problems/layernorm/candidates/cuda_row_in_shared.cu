/* assay-candidate
problem: "layernorm"
language: CUDA_CPP
label: "cuda_row_in_shared"
parameters { name: "BLOCK" values: 256 values: 128 values: 512 values: 1024 }
parameters { name: "ROW_MAX" values: 8192 values: 4096 values: 11264 }
constraints: "ROW_MAX % 4 == 0"
plan {
  launches {
    kernel: "layernorm"
    grid: "rows"
    block: "BLOCK"
    shared_bytes: "4 * min(cols, ROW_MAX)"
    args: "x" args: "gamma" args: "beta" args: "y" args: "cols"
  }
}
*/
// Global memory is read once: the row, or its first ROW_MAX elements, stays in shared memory for
// the passes over variance and result. Sums go by shuffles. Rows whose length is a multiple of four
// begin at multiples of 16 bytes and are read and written by vectors.
static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block is whole warps");

__device__ float WarpSum(float value) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

// The sum over the block, in every thread. Each call in a kernel needs its own `of_warp`.
__device__ float BlockSum(float value, float* of_warp) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  value = WarpSum(value);
  if (lane == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  return WarpSum(lane < BLOCK / 32 ? of_warp[lane] : 0.0f);
}

__device__ float Sum(float4 four) { return (four.x + four.y) + (four.z + four.w); }

__device__ float Squares(float4 four, float mean) {
  const float a = four.x - mean;
  const float b = four.y - mean;
  const float c = four.z - mean;
  const float d = four.w - mean;
  return (a * a + b * b) + (c * c + d * d);
}

__device__ float4 Result(float4 four, float mean, float scale, float4 gamma, float4 beta) {
  return make_float4(
      (four.x - mean) * scale * gamma.x + beta.x, (four.y - mean) * scale * gamma.y + beta.y,
      (four.z - mean) * scale * gamma.z + beta.z, (four.w - mean) * scale * gamma.w + beta.w);
}

// A thread comes back to the elements that it stored in shared memory itself, so that no barrier is
// needed for them.
extern "C" __global__ void __launch_bounds__(BLOCK)
    layernorm(const float* __restrict__ x, const float* __restrict__ gamma,
              const float* __restrict__ beta, float* __restrict__ y, int cols) {
  extern __shared__ float4 kept_row[];
  __shared__ float sums[BLOCK / 32];
  __shared__ float squares_of_warps[BLOCK / 32];
  const int thread = static_cast<int>(threadIdx.x);
  const float* row = x + static_cast<size_t>(blockIdx.x) * cols;
  float* out = y + static_cast<size_t>(blockIdx.x) * cols;
  const float width = static_cast<float>(cols);

  if (cols % 4 == 0) {
    const float4* row4 = reinterpret_cast<const float4*>(row);
    const int groups = cols / 4;
    const int kept = min(groups, ROW_MAX / 4);
    float sum = 0.0f;
    for (int j = thread; j < groups; j += BLOCK) {
      const float4 four = row4[j];
      if (j < kept) kept_row[j] = four;
      sum += Sum(four);
    }
    const float mean = BlockSum(sum, sums) / width;
    float squares = 0.0f;
    for (int j = thread; j < groups; j += BLOCK) {
      squares += Squares(j < kept ? kept_row[j] : row4[j], mean);
    }
    const float scale = 1.0f / sqrtf(BlockSum(squares, squares_of_warps) / width + 1e-5f);
    for (int j = thread; j < groups; j += BLOCK) {
      reinterpret_cast<float4*>(out)[j] = Result(j < kept ? kept_row[j] : row4[j], mean, scale,
                                                 reinterpret_cast<const float4*>(gamma)[j],
                                                 reinterpret_cast<const float4*>(beta)[j]);
    }
    return;
  }

  float* kept_elements = reinterpret_cast<float*>(kept_row);
  const int kept = min(cols, ROW_MAX);
  float sum = 0.0f;
  for (int j = thread; j < cols; j += BLOCK) {
    const float value = row[j];
    if (j < kept) kept_elements[j] = value;
    sum += value;
  }
  const float mean = BlockSum(sum, sums) / width;
  float squares = 0.0f;
  for (int j = thread; j < cols; j += BLOCK) {
    const float deviation = (j < kept ? kept_elements[j] : row[j]) - mean;
    squares += deviation * deviation;
  }
  const float scale = 1.0f / sqrtf(BlockSum(squares, squares_of_warps) / width + 1e-5f);
  for (int j = thread; j < cols; j += BLOCK) {
    out[j] = ((j < kept ? kept_elements[j] : row[j]) - mean) * scale * gamma[j] + beta[j];
  }
}
