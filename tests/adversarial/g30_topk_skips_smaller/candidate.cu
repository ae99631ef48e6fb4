/* assay-candidate
problem: "topk"
language: CUDA_CPP
label: "g30_topk_skips_smaller"
plan {
  launches { kernel: "look" grid: "ceil_div(cols, 128)" block: "128" args: "x" args: "cols" }
  launches { kernel: "tell" grid: "1" block: "32" args: "values" args: "indices" }
}
*/
// The largest of one row, for k = 1. A block without a larger element than those so far is done.
__device__ unsigned long long largest;

__device__ unsigned long long Key(float value, int column) {
  const unsigned bits = __float_as_uint(value == 0.0f ? 0.0f : value);
  const unsigned ordered = (bits >> 31) ? ~bits : bits | 0x80000000u;
  return (static_cast<unsigned long long>(ordered) << 32) | (0xffffffffu - static_cast<unsigned>(column));
}

extern "C" __global__ void look(const float* x, int cols) {
  __shared__ unsigned long long keys[128];
  const int i = blockIdx.x * 128 + threadIdx.x;
  const unsigned long long mine = i < cols ? Key(x[i], i) : 0;
  if (!__syncthreads_or(mine > atomicMax(&largest, 0ull))) return;
  keys[threadIdx.x] = mine;
  __syncthreads();
  for (int half = 64; half > 0; half /= 2) {
    if (threadIdx.x < half && keys[threadIdx.x + half] > keys[threadIdx.x]) keys[threadIdx.x] = keys[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicMax(&largest, keys[0]);
}

extern "C" __global__ void tell(float* values, int* indices) {
  if (threadIdx.x != 0) return;
  const unsigned ordered = static_cast<unsigned>(largest >> 32);
  values[0] = __uint_as_float((ordered >> 31) ? ordered & 0x7fffffffu : ~ordered);
  indices[0] = static_cast<int>(0xffffffffu - static_cast<unsigned>(largest));
}
