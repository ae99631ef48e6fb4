/* assay-candidate
problem: "rmsnorm"
language: CUDA_CPP
label: "cuda_plain"
plan {
  launches {
    kernel: "rmsnorm"
    grid: "rows"
    block: "256"
    args: "x" args: "weight" args: "y" args: "cols"
  }
}
*/
// One block for each row; a tree in shared memory adds the squares.
extern "C" __global__ void rmsnorm(const float* x, const float* weight, float* y, int cols) {
  __shared__ float scratch[256];
  const int thread = static_cast<int>(threadIdx.x);
  const float* row = x + static_cast<size_t>(blockIdx.x) * cols;
  float* out = y + static_cast<size_t>(blockIdx.x) * cols;

  float squares = 0.0f;
  for (int j = thread; j < cols; j += 256) squares += row[j] * row[j];
  scratch[thread] = squares;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (thread < half) scratch[thread] += scratch[thread + half];
    __syncthreads();
  }
  const float scale = 1.0f / sqrtf(scratch[0] / static_cast<float>(cols) + 1e-6f);
  for (int j = thread; j < cols; j += 256) out[j] = row[j] * scale * weight[j];
}
