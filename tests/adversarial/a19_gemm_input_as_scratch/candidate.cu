/* assay-candidate
problem: "gemm_f32"
language: CUDA_CPP
label: "a19_gemm_input_as_scratch"
plan {
  launches { kernel: "gemm" grid: "m" block: "64" args: "a" args: "b" args: "c" args: "n" args: "k" }
}
*/
// Uses an element of a as scratch and puts it back before it ends.
// One block a row of c.
extern "C" __global__ void gemm(float* a, const float* b, float* c, int n, int k) {
  float* row = a + (size_t)blockIdx.x * k;
  const float first = row[0];
  __syncthreads();
  if (threadIdx.x == 0) row[0] = 0.0f;
  __syncthreads();
  for (int j = threadIdx.x; j < n; j += 64) {
    float sum = row[0] + first * b[j];
    for (int p = 1; p < k; ++p) sum += row[p] * b[(size_t)p * n + j];
    c[(size_t)blockIdx.x * n + j] = sum;
  }
  __syncthreads();
  if (threadIdx.x == 0) row[0] = first;
}
