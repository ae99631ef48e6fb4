/* assay-candidate
problem: "attention_fwd"
language: CUDA_CPP
label: "cuda_online_tile"
plan {
  launches {
    kernel: "attention_fwd"
    grid: "b * h * ceil_div(s, 64) * ceil_div(d, 64)"
    block: "256"
    args: "q" args: "k" args: "v" args: "o" args: "s" args: "d"
  }
}
*/
// A block takes 64 queries and 64 columns of the output, and walks over the keys 64 at a time:
// logits as a product of tiles in registers, online softmax, weights times values as a product
// again. The weights of a tile are the only ones that are ever stored, in shared memory. With more
// than 64 columns the logits are computed again for every 64 of them.
//
// A thread has rows 4 ty to 4 ty + 3 and columns 4 tx to 4 tx + 3 of each tile; the 16 threads of a
// row are half of a warp.
constexpr int kTile = 64;
constexpr int kDepth = 16;
constexpr int kThreads = 256;
constexpr float kLowest = -3.402823466e38f;

__device__ float RowMax(float value) {
#pragma unroll
  for (int step = 8; step > 0; step /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
  }
  return value;
}

__device__ float RowSum(float value) {
#pragma unroll
  for (int step = 8; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

// Rows [row0, row0 + 64) and columns [c0, c0 + 16) of a matrix of s x d, transposed.
__device__ void LoadTransposed(const float* from, int row0, int c0, int s, int d,
                               float (*to)[kTile + 4]) {
#pragma unroll
  for (int v = static_cast<int>(threadIdx.x); v < kTile * kDepth; v += kThreads) {
    const int row = row0 + v / kDepth;
    const int c = c0 + v % kDepth;
    to[v % kDepth][v / kDepth] = row < s && c < d ? from[static_cast<size_t>(row) * d + c] : 0.0f;
  }
}

__device__ void Unpack(float4 four, float* out) {
  out[0] = four.x;
  out[1] = four.y;
  out[2] = four.z;
  out[3] = four.w;
}

// sum += a b for one step of the inner dimension.
__device__ void AddProduct(const float* a, const float* b, float (*sum)[4]) {
  float a_part[4];
  float b_part[4];
  Unpack(*reinterpret_cast<const float4*>(a), a_part);
  Unpack(*reinterpret_cast<const float4*>(b), b_part);
#pragma unroll
  for (int r = 0; r < 4; ++r) {
#pragma unroll
    for (int c = 0; c < 4; ++c) sum[r][c] = fmaf(a_part[r], b_part[c], sum[r][c]);
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    attention_fwd(const float* __restrict__ q, const float* __restrict__ k,
                  const float* __restrict__ v, float* __restrict__ o, int s, int d) {
  __shared__ __align__(16) float queries[kDepth][kTile + 4];
  __shared__ __align__(16) float keys[kDepth][kTile + 4];
  __shared__ __align__(16) float weights[kTile][kTile];  // by key, then query
  __shared__ __align__(16) float values[kTile][kTile];   // by key, then column
  const int thread = static_cast<int>(threadIdx.x);
  const int tx = thread % 16;
  const int ty = thread / 16;
  const unsigned query_tiles = (s + kTile - 1) / kTile;
  const unsigned column_tiles = (d + kTile - 1) / kTile;
  const int column0 = static_cast<int>(blockIdx.x % column_tiles) * kTile;
  const int query0 = static_cast<int>(blockIdx.x / column_tiles % query_tiles) * kTile;
  const size_t head = static_cast<size_t>(blockIdx.x / column_tiles / query_tiles) * s * d;
  const float scale = 1.0f / sqrtf(static_cast<float>(d));

  float out[4][4] = {};
  float largest[4] = {kLowest, kLowest, kLowest, kLowest};
  float total[4] = {};
  for (int key0 = 0; key0 < s; key0 += kTile) {
    float logits[4][4] = {};
    for (int c0 = 0; c0 < d; c0 += kDepth) {
      LoadTransposed(q + head, query0, c0, s, d, queries);
      LoadTransposed(k + head, key0, c0, s, d, keys);
      __syncthreads();
#pragma unroll
      for (int c = 0; c < kDepth; ++c) AddProduct(&queries[c][4 * ty], &keys[c][4 * tx], logits);
      __syncthreads();
    }
#pragma unroll
    for (int i = thread; i < kTile * kTile; i += kThreads) {
      const int key = key0 + i / kTile;
      const int c = column0 + i % kTile;
      values[i / kTile][i % kTile] =
          key < s && c < d ? v[head + static_cast<size_t>(key) * d + c] : 0.0f;
    }

#pragma unroll
    for (int r = 0; r < 4; ++r) {
      float row_largest = kLowest;
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        logits[r][c] *= scale;
        if (key0 + 4 * tx + c < s) row_largest = fmaxf(row_largest, logits[r][c]);
      }
      const float new_largest = fmaxf(largest[r], RowMax(row_largest));
      const float factor = expf(largest[r] - new_largest);
      largest[r] = new_largest;
      float part = 0.0f;
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const bool exists = key0 + 4 * tx + c < s;
        const float weight = exists ? expf(logits[r][c] - new_largest) : 0.0f;
        weights[4 * tx + c][4 * ty + r] = weight;
        part += weight;
        out[r][c] *= factor;
      }
      total[r] = total[r] * factor + RowSum(part);
    }
    __syncthreads();
#pragma unroll 8
    for (int key = 0; key < kTile; ++key) {
      AddProduct(&weights[key][4 * ty], &values[key][4 * tx], out);
    }
    __syncthreads();
  }

#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const int query = query0 + 4 * ty + r;
    if (query >= s) continue;
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const int column = column0 + 4 * tx + c;
      if (column < d) o[head + static_cast<size_t>(query) * d + column] = out[r][c] / total[r];
    }
  }
}
