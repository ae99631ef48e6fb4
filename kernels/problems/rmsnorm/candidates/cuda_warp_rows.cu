/* assay-candidate
problem: "rmsnorm"
language: CUDA_CPP
label: "cuda_warp_rows"
parameters { name: "WARPS" values: 4 values: 1 values: 2 values: 8 }
plan {
  launches {
    kernel: "rmsnorm"
    grid: "ceil_div(rows, WARPS)"
    block: "32 * WARPS"
    args: "x" args: "weight" args: "y" args: "rows" args: "cols"
  }
}
*/
// One warp for each row: the sum goes by shuffles, without shared memory and without barriers. Rows
// whose length is a multiple of four begin at multiples of 16 bytes and go by vectors.
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    rmsnorm(const float* __restrict__ x, const float* __restrict__ weight, float* __restrict__ y,
            int rows, int cols) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const unsigned i = blockIdx.x * WARPS + threadIdx.x / 32;
  if (i >= static_cast<unsigned>(rows)) return;  // the whole warp
  const float* row = x + static_cast<size_t>(i) * cols;
  float* out = y + static_cast<size_t>(i) * cols;
  const float4* row4 = reinterpret_cast<const float4*>(row);
  const int groups = cols % 4 == 0 ? cols / 4 : 0;

  float even = 0.0f;
  float odd = 0.0f;
  for (int j = lane; j < groups; j += 32) {
    const float4 four = row4[j];
    even += four.x * four.x + four.z * four.z;
    odd += four.y * four.y + four.w * four.w;
  }
  for (int j = 4 * groups + lane; j < cols; j += 32) even += row[j] * row[j];
  float squares = even + odd;
#pragma unroll
  for (int step = 16; step > 0; step /= 2) squares += __shfl_xor_sync(0xffffffffu, squares, step);

  const float scale = 1.0f / sqrtf(squares / static_cast<float>(cols) + 1e-6f);
  for (int j = lane; j < groups; j += 32) {
    const float4 four = row4[j];
    const float4 by = reinterpret_cast<const float4*>(weight)[j];
    reinterpret_cast<float4*>(out)[j] = make_float4(four.x * scale * by.x, four.y * scale * by.y,
                                                    four.z * scale * by.z, four.w * scale * by.w);
  }
  for (int j = 4 * groups + lane; j < cols; j += 32) out[j] = row[j] * scale * weight[j];
}
