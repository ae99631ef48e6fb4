/* assay-candidate
problem: "gemv_w2a8"
language: CUDA_CPP
label: "cuda_dp4a_warps"
parameters { name: "WARPS" values: 4 values: 1 values: 2 values: 8 }
plan {
  launches {
    kernel: "gemv_w2a8"
    grid: "ceil_div(n, WARPS)"
    block: "32 * WARPS"
    args: "w_packed" args: "w_scale" args: "x" args: "x_scale" args: "y" args: "n" args: "k"
  }
}
*/
// One warp for each row. The four codes of a byte are spread over the bytes of a word, made signed
// weights all at once, and meet their four activations in one dp4a. When rows begin at multiples of
// four bytes a lane takes 16 codes and 16 activations at a time.

// Code t of `codes` as the signed weight in byte t.
__device__ int Weights(unsigned codes) {
  const unsigned spread = (codes | codes << 6 | codes << 12 | codes << 18) & 0x03030303u;
  return static_cast<int>((spread + 0x7f7f7f7fu) ^ 0x80808080u);  // minus one, byte by byte
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    gemv_w2a8(const unsigned char* __restrict__ w_packed, const float* __restrict__ w_scale,
              const signed char* __restrict__ x, const float* __restrict__ x_scale,
              float* __restrict__ y, int n, int k) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int j = static_cast<int>(blockIdx.x * WARPS + threadIdx.x / 32);
  if (j >= n) return;  // the whole warp
  const int bytes = k / 4;
  const unsigned char* row = w_packed + static_cast<size_t>(j) * bytes;
  const int words = bytes % 4 == 0 ? bytes / 4 : 0;

  int sum = 0;
  for (int i = lane; i < words; i += 32) {
    const unsigned codes = reinterpret_cast<const unsigned*>(row)[i];
    const int4 activations = reinterpret_cast<const int4*>(x)[i];
    sum = __dp4a(Weights(codes & 0xffu), activations.x, sum);
    sum = __dp4a(Weights(codes >> 8 & 0xffu), activations.y, sum);
    sum = __dp4a(Weights(codes >> 16 & 0xffu), activations.z, sum);
    sum = __dp4a(Weights(codes >> 24), activations.w, sum);
  }
  for (int i = 4 * words + lane; i < bytes; i += 32) {
    sum = __dp4a(Weights(row[i]), reinterpret_cast<const int*>(x)[i], sum);
  }
#pragma unroll
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (lane == 0) y[j] = static_cast<float>(sum) * w_scale[j] * x_scale[0];
}
