/* assay-candidate
problem: "topk"
language: CUDA_CPP
label: "cuda_warp_select"
parameters { name: "WARPS" values: 8 values: 2 values: 4 values: 16 }
plan {
  launches {
    kernel: "topk"
    grid: "rows"
    block: "32 * WARPS"
    args: "x" args: "values" args: "indices" args: "cols" args: "k"
  }
}
*/
// A warp keeps the 32 best elements that it saw, sorted, one a lane. Most elements are compared
// with the worst of them once and forgotten; one that passes finds its place by a ballot and moves
// the lanes behind it by one. One warp then merges the lists of all warps. A k over 32 takes
// several passes, each over the elements that come after the last one taken.
//
// Elements are compared as keys of 64 bits: the value so that unsigned integers have its order,
// then the column, smaller ones first. No two keys are equal and none is 0.
typedef unsigned long long Key;

__device__ Key KeyOf(float value, int index) {
  unsigned bits = value == 0.0f ? 0u : __float_as_uint(value);  // -0 equals +0
  bits ^= (bits >> 31) != 0 ? 0xffffffffu : 0x80000000u;
  return static_cast<Key>(bits) << 32 | (0xffffffffu - static_cast<unsigned>(index));
}

__device__ int IndexOf(Key key) {
  return static_cast<int>(0xffffffffu - static_cast<unsigned>(key));
}

// Puts the warp's 32 new keys, 0 for none, into the sorted list that has `kept` in this lane.
__device__ Key Insert(Key kept, Key fresh) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  Key worst = __shfl_sync(0xffffffffu, kept, 31);
  unsigned passed = __ballot_sync(0xffffffffu, fresh > worst);
  while (passed != 0) {
    const int source = __ffs(static_cast<int>(passed)) - 1;
    passed &= passed - 1;
    const Key key = __shfl_sync(0xffffffffu, fresh, source);
    if (key <= worst) continue;  // for all lanes: the list grew better meanwhile
    const int place = __popc(__ballot_sync(0xffffffffu, kept > key));
    const Key left = __shfl_up_sync(0xffffffffu, kept, 1);
    if (lane == place) kept = key;
    if (lane > place) kept = left;
    worst = __shfl_sync(0xffffffffu, kept, 31);
  }
  return kept;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    topk(const float* __restrict__ x, float* __restrict__ values, int* __restrict__ indices,
         int cols, int k) {
  __shared__ Key lists[WARPS][32];
  __shared__ Key shared_bound;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const float* row = x + static_cast<size_t>(blockIdx.x) * cols;
  const size_t out = static_cast<size_t>(blockIdx.x) * k;

  Key bound = ~0ULL;  // elements from here on are taken already
  for (int done = 0; done < k; done += 32) {
    Key kept = 0;
    for (long long first = 32LL * warp; first < cols; first += 32LL * WARPS) {
      const long long j = first + lane;
      Key key = j < cols ? KeyOf(row[j], static_cast<int>(j)) : 0;
      if (key >= bound) key = 0;
      kept = Insert(kept, key);
    }
    lists[warp][lane] = kept;
    __syncthreads();
    if (warp == 0) {
      for (int other = 1; other < WARPS; ++other) kept = Insert(kept, lists[other][lane]);
      if (done + lane < k) {
        const int index = IndexOf(kept);
        values[out + done + lane] = row[index];
        indices[out + done + lane] = index;
      }
      if (lane == 31) shared_bound = kept;
    }
    __syncthreads();
    bound = shared_bound;
    // The next pass writes lists before its barrier and shared_bound after it.
  }
}
