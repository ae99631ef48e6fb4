/* assay-candidate
problem: "gelu"
language: CUDA_CPP
label: "cuda_vector4"
parameters { name: "BLOCK" values: 256 values: 128 values: 512 }
plan {
  launches {
    kernel: "gelu"
    grid: "ceil_div(n, 4 * BLOCK)"
    block: "BLOCK"
    args: "x" args: "y" args: "n"
  }
}
*/
// Accesses of 16 bytes; erfc keeps the digits that 1 + erf loses on the left. The thread after the
// last vector takes the one to three elements that are left.
__device__ float Gelu(float x) { return 0.5f * x * erfcf(-0.70710678f * x); }

extern "C" __global__ void __launch_bounds__(BLOCK)
    gelu(const float* __restrict__ x, float* __restrict__ y, int n) {
  const int i = static_cast<int>(blockIdx.x * BLOCK + threadIdx.x);
  if (i < n / 4) {
    const float4 four = reinterpret_cast<const float4*>(x)[i];
    reinterpret_cast<float4*>(y)[i] =
        make_float4(Gelu(four.x), Gelu(four.y), Gelu(four.z), Gelu(four.w));
  } else if (i == n / 4) {
    for (int tail = 4 * i; tail < n; ++tail) y[tail] = Gelu(x[tail]);
  }
}
