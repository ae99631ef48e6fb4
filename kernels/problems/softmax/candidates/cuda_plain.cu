/* assay-candidate
problem: "softmax"
language: CUDA_CPP
label: "cuda_plain"
plan {
  launches {
    kernel: "softmax"
    grid: "rows"
    block: "256"
    args: "x" args: "y" args: "cols"
  }
}
*/
// One block for each row, three passes over it: maximum, sum, result. Trees in shared memory.
extern "C" __global__ void softmax(const float* x, float* y, int cols) {
  __shared__ float scratch[256];
  const int thread = static_cast<int>(threadIdx.x);
  const float* row = x + static_cast<size_t>(blockIdx.x) * cols;
  float* out = y + static_cast<size_t>(blockIdx.x) * cols;

  float largest = row[0];
  for (int j = thread; j < cols; j += 256) largest = fmaxf(largest, row[j]);
  scratch[thread] = largest;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (thread < half) scratch[thread] = fmaxf(scratch[thread], scratch[thread + half]);
    __syncthreads();
  }
  largest = scratch[0];
  __syncthreads();  // scratch is written again

  float sum = 0.0f;
  for (int j = thread; j < cols; j += 256) sum += expf(row[j] - largest);
  scratch[thread] = sum;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (thread < half) scratch[thread] += scratch[thread + half];
    __syncthreads();
  }
  sum = scratch[0];

  for (int j = thread; j < cols; j += 256) out[j] = expf(row[j] - largest) / sum;
}
