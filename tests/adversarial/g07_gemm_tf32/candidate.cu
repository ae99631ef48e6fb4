/* assay-candidate
problem: "gemm_f32"
language: CUDA_CPP
label: "g07_gemm_tf32"
contract: "tf32"
plan {
  launches { kernel: "gemm" grid: "ceil_div(n, 8)" grid: "ceil_div(m, 16)" block: "32" args: "a" args: "b" args: "c" args: "m" args: "n" args: "k" }
}
*/
// One warp for 16 x 8 of c, on tensor cores that round operands to tf32, under the contract that
// allows it.
__device__ unsigned Tf32(const float* from, bool exists) {
  unsigned bits = 0;
  if (exists) asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(*from));
  return bits;
}

extern "C" __global__ void gemm(const float* a, const float* b, float* c, int m, int n, int k) {
  const int g = threadIdx.x / 4;
  const int t = threadIdx.x % 4;
  const int i = blockIdx.y * 16 + g;
  const int j = blockIdx.x * 8;
  float d[4] = {};
  for (int p = 0; p < k; p += 8) {
    const unsigned a0 = Tf32(a + (size_t)i * k + p + t, i < m && p + t < k);
    const unsigned a1 = Tf32(a + (size_t)(i + 8) * k + p + t, i + 8 < m && p + t < k);
    const unsigned a2 = Tf32(a + (size_t)i * k + p + t + 4, i < m && p + t + 4 < k);
    const unsigned a3 = Tf32(a + (size_t)(i + 8) * k + p + t + 4, i + 8 < m && p + t + 4 < k);
    const unsigned b0 = Tf32(b + (size_t)(p + t) * n + j + g, p + t < k && j + g < n);
    const unsigned b1 = Tf32(b + (size_t)(p + t + 4) * n + j + g, p + t + 4 < k && j + g < n);
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  }
  for (int e = 0; e < 4; ++e) {
    const int row = i + e / 2 * 8;
    const int col = j + 2 * t + e % 2;
    if (row < m && col < n) c[(size_t)row * n + col] = d[e];
  }
}
