/* assay-candidate
problem: "gemm_f16"
language: CUDA_CPP
label: "g16_gemm_inline_ptx"
plan {
  launches { kernel: "gemm" grid: "ceil_div(n, 8)" grid: "ceil_div(m, 16)" block: "32" args: "a" args: "b" args: "c" args: "m" args: "n" args: "k" }
}
*/
// cp.async, ldmatrix and mma in inline PTX.
#include <cuda_fp16.h>

// One warp for 16 x 8 of c. Whole tiles only; other shapes go element by element.
extern "C" __global__ void gemm(const __half* a, const __half* b, float* c, int m, int n, int k) {
  __shared__ __align__(16) __half tile_a[16][16];
  __shared__ __align__(16) __half tile_b[16][8];
  const int lane = threadIdx.x;
  const int i0 = blockIdx.y * 16;
  const int j0 = blockIdx.x * 8;
  if (m % 16 != 0 || n % 8 != 0 || k % 16 != 0) {
    for (int e = lane; e < 128; e += 32) {
      const int i = i0 + e / 8;
      const int j = j0 + e % 8;
      float sum = 0.0f;
      if (i >= m || j >= n) continue;
      for (int p = 0; p < k; ++p) sum += __half2float(a[(size_t)i * k + p]) * __half2float(b[(size_t)p * n + j]);
      c[(size_t)i * n + j] = sum;
    }
    return;
  }
  float d[4] = {};
  for (int p = 0; p < k; p += 16) {
    unsigned to = __cvta_generic_to_shared(&tile_a[lane / 2][lane % 2 * 8]);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(a + (size_t)(i0 + lane / 2) * k + p + lane % 2 * 8) : "memory");
    if (lane < 16) {
      to = __cvta_generic_to_shared(&tile_b[lane][0]);
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(b + (size_t)(p + lane) * n + j0) : "memory");
    }
    asm volatile("cp.async.commit_group;\n cp.async.wait_group 0;" ::: "memory");
    __syncwarp();
    unsigned fa[4], fb[2];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3])
                 : "r"((unsigned)__cvta_generic_to_shared(&tile_a[lane % 16][lane / 16 * 8])) : "memory");
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(fb[0]), "=r"(fb[1]) : "r"((unsigned)__cvta_generic_to_shared(&tile_b[lane % 16][0])) : "memory");
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
    __syncwarp();
  }
  for (int e = 0; e < 4; ++e) c[(size_t)(i0 + lane / 4 + e / 2 * 8) * n + j0 + lane % 4 * 2 + e % 2] = d[e];
}
