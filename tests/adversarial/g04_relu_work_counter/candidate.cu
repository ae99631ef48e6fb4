/* assay-candidate
problem: "relu"
language: CUDA_CPP
label: "g04_relu_work_counter"
plan {
  launches { kernel: "reset" grid: "1" block: "1" }
  launches { kernel: "relu" grid: "4" block: "128" args: "x" args: "y" args: "n" }
}
*/
// Persistent blocks with a work counter in a module variable that a launch of the plan clears.
__device__ int next;

extern "C" __global__ void reset() { next = 0; }

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
}
