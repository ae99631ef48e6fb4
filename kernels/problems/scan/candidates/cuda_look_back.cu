/* assay-candidate
problem: "scan"
language: CUDA_CPP
label: "cuda_look_back"
parameters { name: "BLOCK" values: 256 values: 128 values: 512 }
parameters { name: "VECTORS" values: 2 values: 1 values: 4 }
plan {
  workspaces { name: "tiles" bytes: "8 * ceil_div(n, 4 * VECTORS * BLOCK)" }
  workspaces { name: "ticket" bytes: "4" }
  launches {
    kernel: "reset"
    grid: "ceil_div(ceil_div(n, 4 * VECTORS * BLOCK), 256)"
    block: "256"
    args: "tiles" args: "ticket" args: "ceil_div(n, 4 * VECTORS * BLOCK)"
  }
  launches {
    kernel: "scan"
    grid: "ceil_div(n, 4 * VECTORS * BLOCK)"
    block: "BLOCK"
    args: "x" args: "y" args: "tiles" args: "ticket" args: "n"
  }
}
*/
// One pass over memory. A block takes a tile by a ticket, so that all tiles before it have begun.
// It leaves the tile's own sum for the blocks after it, looks back over its predecessors until it
// finds one that knows everything before itself, and then leaves that for the tile too. State and
// sum of a tile are one word of 64 bits, so that nobody sees one without the other.
static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block is whole warps");

constexpr int kItems = 4 * VECTORS;  // of a thread, neighbours
constexpr unsigned kAbsent = 0;
constexpr unsigned kOwnSum = 1;   // of the tile
constexpr unsigned kAllSums = 2;  // of the tile and all before it

__device__ void Publish(unsigned long long* tile, unsigned state, float sum) {
  __threadfence();
  atomicExch(tile, static_cast<unsigned long long>(state) << 32 | __float_as_uint(sum));
}

// The sum of everything before tile `index`, in every lane. The whole warp looks at 32 tiles at a
// time.
__device__ float LookBack(unsigned long long* tiles, int index) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float before = 0.0f;
  for (int last = index - 1; last >= 0; last -= 32) {
    const int mine = last - lane;  // lane 0 is the nearest
    unsigned state = kAllSums;
    float sum = 0.0f;
    if (mine >= 0) {
      unsigned long long word;
      do {
        word = atomicAdd(tiles + mine, 0ULL);
        state = static_cast<unsigned>(word >> 32);
      } while (state == kAbsent);
      sum = __uint_as_float(static_cast<unsigned>(word));
    }
    __syncwarp();
    // Nothing behind the nearest tile that knows everything counts.
    const unsigned complete = __ballot_sync(0xffffffffu, state == kAllSums);
    const int nearest = complete == 0 ? 31 : __ffs(static_cast<int>(complete)) - 1;
    if (lane > nearest) sum = 0.0f;
#pragma unroll
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    before += sum;
    if (complete != 0) break;
  }
  __threadfence();
  return before;
}

__device__ float WarpScan(float value) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const float left = __shfl_up_sync(0xffffffffu, value, step);
    if (lane >= step) value += left;
  }
  return value;
}

extern "C" __global__ void reset(unsigned long long* tiles, unsigned* ticket, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) tiles[i] = static_cast<unsigned long long>(kAbsent) << 32;
  if (i == 0) *ticket = 0;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    scan(const float* __restrict__ x, float* __restrict__ y, unsigned long long* tiles,
         unsigned* ticket, int n) {
  __shared__ int shared_tile;
  __shared__ float warp_sums[BLOCK / 32];
  __shared__ float shared_before;
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int warp = thread / 32;
  if (thread == 0) shared_tile = static_cast<int>(atomicAdd(ticket, 1u));
  __syncthreads();
  const int tile = shared_tile;
  const int first = tile * (BLOCK * kItems) + thread * kItems;

  float items[kItems];
#pragma unroll
  for (int v = 0; v < VECTORS; ++v) {
    const int i = first + 4 * v;
    if (i + 4 <= n) {
      const float4 four = *reinterpret_cast<const float4*>(x + i);
      items[4 * v] = four.x;
      items[4 * v + 1] = four.y;
      items[4 * v + 2] = four.z;
      items[4 * v + 3] = four.w;
    } else {
#pragma unroll
      for (int t = 0; t < 4; ++t) items[4 * v + t] = i + t < n ? x[i + t] : 0.0f;
    }
  }
#pragma unroll
  for (int t = 1; t < kItems; ++t) items[t] += items[t - 1];

  const float through = WarpScan(items[kItems - 1]);
  if (lane == 31) warp_sums[warp] = through;
  __syncthreads();
  if (warp == 0) {
    const float sums = WarpScan(lane < BLOCK / 32 ? warp_sums[lane] : 0.0f);
    const float own = __shfl_sync(0xffffffffu, sums, BLOCK / 32 - 1);
    if (lane == 0) Publish(tiles + tile, tile == 0 ? kAllSums : kOwnSum, own);
    const float before = LookBack(tiles, tile);
    if (lane == 0) {
      if (tile > 0) Publish(tiles + tile, kAllSums, before + own);
      shared_before = before;
    }
    __syncwarp();
    if (lane < BLOCK / 32) warp_sums[lane] = sums;
  }
  __syncthreads();

  float before = __shfl_up_sync(0xffffffffu, through, 1);
  if (lane == 0) before = 0.0f;
  if (warp > 0) before += warp_sums[warp - 1];
  before += shared_before;
#pragma unroll
  for (int v = 0; v < VECTORS; ++v) {
    const int i = first + 4 * v;
    const float a = before + items[4 * v];
    const float b = before + items[4 * v + 1];
    const float c = before + items[4 * v + 2];
    const float d = before + items[4 * v + 3];
    if (i + 4 <= n) {
      *reinterpret_cast<float4*>(y + i) = make_float4(a, b, c, d);
    } else {
      if (i < n) y[i] = a;
      if (i + 1 < n) y[i + 1] = b;
      if (i + 2 < n) y[i + 2] = c;
    }
  }
}
