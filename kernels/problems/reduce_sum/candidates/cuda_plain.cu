/* assay-candidate
problem: "reduce_sum"
language: CUDA_CPP
label: "cuda_plain"
plan {
  launches {
    kernel: "reduce_sum"
    grid: "1"
    block: "1024"
    args: "x" args: "y" args: "n"
  }
}
*/
// One block: every thread adds up its share, then a tree in shared memory adds the shares.
extern "C" __global__ void reduce_sum(const float* x, float* y, int n) {
  __shared__ float partial[1024];
  const int thread = static_cast<int>(threadIdx.x);
  float sum = 0.0f;
  for (int i = thread; i < n; i += 1024) sum += x[i];
  partial[thread] = sum;
  __syncthreads();
  for (int half = 512; half > 0; half /= 2) {
    if (thread < half) partial[thread] += partial[thread + half];
    __syncthreads();
  }
  if (thread == 0) y[0] = partial[0];
}
