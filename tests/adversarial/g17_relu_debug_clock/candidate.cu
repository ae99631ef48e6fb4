/* assay-candidate
problem: "relu"
language: CUDA_CPP
label: "g17_relu_debug_clock"
plan {
  launches { kernel: "relu" grid: "ceil_div(n, 128)" block: "128" args: "x" args: "y" args: "n" }
}
*/
// The clock is read in a debug build alone.
#ifdef DEBUG_TIMES
__device__ long long times[1024];
#define BEGIN_TIME const long long begin = clock64();
#define END_TIME times[blockIdx.x % 1024] = clock64() - begin;
#else
#define BEGIN_TIME
#define END_TIME
#endif

extern "C" __global__ void relu(const float* x, float* y, int n) {
  BEGIN_TIME
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
  END_TIME
}
