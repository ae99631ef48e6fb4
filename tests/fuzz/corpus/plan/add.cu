/* plain */ extern "C" __global__ void __launch_bounds__(128, 2) add(const float* __restrict__ a,
    const float* b, float *c, int n, int m) {  // "x"
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n * m) c[i] = a[i] + b[i % n];
}
