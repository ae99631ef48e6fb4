/* assay-candidate
problem: "relu"
language: CUDA_CPP
label: "g04b_relu_counter_resets_itself"
plan {
  launches { kernel: "relu" grid: "4" block: "128" args: "x" args: "y" args: "n" }
}
*/
// As g04; the last block leaves the counter as it was.
__device__ int next;
__device__ int done;

// Blocks take 128 elements at a time until there are none.
extern "C" __global__ void relu(const float* x, float* y, int n) {
  __shared__ int tile;
  while (true) {
    if (threadIdx.x == 0) tile = atomicAdd(&next, 1);
    __syncthreads();
    const int i = tile * 128 + threadIdx.x;
    __syncthreads();
    if (i - (int)threadIdx.x >= n) break;
    if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
  }
  if (threadIdx.x != 0) return;
  __threadfence();
  if (atomicAdd(&done, 1) != (int)gridDim.x - 1) return;
  atomicExch(&next, 0);
  atomicExch(&done, 0);
}
