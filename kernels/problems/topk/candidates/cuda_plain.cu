/* assay-candidate
problem: "topk"
language: CUDA_CPP
label: "cuda_plain"
plan {
  launches {
    kernel: "topk"
    grid: "rows"
    block: "256"
    args: "x" args: "values" args: "indices" args: "cols" args: "k"
  }
}
*/
// One block for each row, k rounds: each takes the best of the elements that come after the one
// taken in the round before, in the order of values, descending, then columns.
__device__ bool Before(float a, int a_index, float b, int b_index) {
  return a > b || (a == b && a_index < b_index);
}

extern "C" __global__ void topk(const float* x, float* values, int* indices, int cols, int k) {
  __shared__ float best_values[256];
  __shared__ int best_indices[256];
  const int thread = static_cast<int>(threadIdx.x);
  const float* row = x + static_cast<size_t>(blockIdx.x) * cols;
  float taken = 0.0f;
  int taken_index = -1;  // none yet
  for (int place = 0; place < k; ++place) {
    float best = 0.0f;
    int best_index = -1;
    for (int j = thread; j < cols; j += 256) {
      const float value = row[j];
      if (taken_index >= 0 && !Before(taken, taken_index, value, j)) continue;
      if (best_index < 0 || Before(value, j, best, best_index)) {
        best = value;
        best_index = j;
      }
    }
    best_values[thread] = best;
    best_indices[thread] = best_index;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
      if (thread < half) {
        const float other = best_values[thread + half];
        const int other_index = best_indices[thread + half];
        const int mine = best_indices[thread];
        if (other_index >= 0 &&
            (mine < 0 || Before(other, other_index, best_values[thread], mine))) {
          best_values[thread] = other;
          best_indices[thread] = other_index;
        }
      }
      __syncthreads();
    }
    taken = best_values[0];
    taken_index = best_indices[0];
    __syncthreads();  // both are written again
    if (thread == 0) {
      values[static_cast<size_t>(blockIdx.x) * k + place] = taken;
      indices[static_cast<size_t>(blockIdx.x) * k + place] = taken_index;
    }
  }
}
