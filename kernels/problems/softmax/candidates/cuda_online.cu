/* assay-candidate
problem: "softmax"
language: CUDA_CPP
label: "cuda_online"
parameters { name: "BLOCK" values: 256 values: 64 values: 128 values: 512 values: 1024 }
plan {
  launches {
    kernel: "softmax"
    grid: "rows"
    block: "BLOCK"
    args: "x" args: "y" args: "cols"
  }
}
*/
// Maximum and sum in one pass: a running sum is rescaled when a larger maximum comes. Rows whose
// length is a multiple of four begin at multiples of 16 bytes and are read and written by vectors.
static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block is whole warps");

// The sum of exp(x - largest) over some elements. An empty one has the lowest finite number as its
// maximum: differences of maxima are then never NaN.
struct Sum {
  float largest;
  float sum;
};

__device__ Sum Add(Sum a, Sum b) {
  const float largest = fmaxf(a.largest, b.largest);
  return {largest, a.sum * expf(a.largest - largest) + b.sum * expf(b.largest - largest)};
}

__device__ Sum AddElement(Sum a, float x) {
  if (x <= a.largest) return {a.largest, a.sum + expf(x - a.largest)};
  return {x, a.sum * expf(a.largest - x) + 1.0f};
}

__device__ Sum WarpSum(Sum value) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    Sum other;
    other.largest = __shfl_xor_sync(0xffffffffu, value.largest, step);
    other.sum = __shfl_xor_sync(0xffffffffu, value.sum, step);
    value = Add(value, other);
  }
  return value;
}

// The sum over the block, in every thread. Called once in a kernel.
__device__ Sum BlockSum(Sum value) {
  __shared__ Sum of_warp[BLOCK / 32];
  __shared__ Sum of_block;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  value = WarpSum(value);
  if (lane == 0) of_warp[warp] = value;
  __syncthreads();
  if (warp == 0) {
    value = of_warp[lane < BLOCK / 32 ? lane : 0];
    if (lane >= BLOCK / 32) value.sum = 0.0f;
    value = WarpSum(value);
    if (lane == 0) of_block = value;
  }
  __syncthreads();
  return of_block;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    softmax(const float* __restrict__ x, float* __restrict__ y, int cols) {
  const int thread = static_cast<int>(threadIdx.x);
  const float* row = x + static_cast<size_t>(blockIdx.x) * cols;
  float* out = y + static_cast<size_t>(blockIdx.x) * cols;
  const bool vectors = cols % 4 == 0;
  const int groups = vectors ? cols / 4 : 0;

  Sum sum = {-3.402823466e38f, 0.0f};
  for (int j = thread; j < groups; j += BLOCK) {
    const float4 four = reinterpret_cast<const float4*>(row)[j];
    const float largest = fmaxf(fmaxf(four.x, four.y), fmaxf(four.z, four.w));
    sum = Add(sum, {largest, expf(four.x - largest) + expf(four.y - largest) +
                                 expf(four.z - largest) + expf(four.w - largest)});
  }
  for (int j = 4 * groups + thread; j < cols; j += BLOCK) sum = AddElement(sum, row[j]);
  sum = BlockSum(sum);

  const float scale = 1.0f / sum.sum;
  for (int j = thread; j < groups; j += BLOCK) {
    const float4 four = reinterpret_cast<const float4*>(row)[j];
    reinterpret_cast<float4*>(out)[j] =
        make_float4(expf(four.x - sum.largest) * scale, expf(four.y - sum.largest) * scale,
                    expf(four.z - sum.largest) * scale, expf(four.w - sum.largest) * scale);
  }
  for (int j = 4 * groups + thread; j < cols; j += BLOCK) {
    out[j] = expf(row[j] - sum.largest) * scale;
  }
}
