/* assay-candidate
problem: "vector_add"
language: CUDA_CPP
label: "cuda_vector4"
parameters { name: "BLOCK" values: 256 values: 128 values: 512 values: 1024 }
parameters { name: "VECTORS" values: 2 values: 1 values: 4 }
constraints: "BLOCK * VECTORS <= 2048"
plan {
  launches {
    kernel: "vector_add"
    grid: "ceil_div(n, 4 * VECTORS * BLOCK)"
    block: "BLOCK"
    args: "a" args: "b" args: "c" args: "n"
  }
}
*/
// Accesses of 16 bytes, VECTORS of them in flight for each thread before the first addition. The
// last one to three elements go one by one.
extern "C" __global__ void __launch_bounds__(BLOCK)
    vector_add(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
               int n) {
  const int first = static_cast<int>(blockIdx.x * (BLOCK * VECTORS) + threadIdx.x);
  float4 x[VECTORS];
  float4 y[VECTORS];
#pragma unroll
  for (int v = 0; v < VECTORS; ++v) {
    const int i = first + v * BLOCK;
    if (i < n / 4) {
      x[v] = reinterpret_cast<const float4*>(a)[i];
      y[v] = reinterpret_cast<const float4*>(b)[i];
    }
  }
#pragma unroll
  for (int v = 0; v < VECTORS; ++v) {
    const int i = first + v * BLOCK;
    if (i < n / 4) {
      reinterpret_cast<float4*>(c)[i] =
          make_float4(x[v].x + y[v].x, x[v].y + y[v].y, x[v].z + y[v].z, x[v].w + y[v].w);
    }
  }
  const int tail = n / 4 * 4 + static_cast<int>(threadIdx.x);
  if (blockIdx.x == gridDim.x - 1 && tail < n) c[tail] = a[tail] + b[tail];
}
