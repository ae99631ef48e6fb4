/* assay-candidate
problem: "attention_fwd"
language: CUDA_CPP
label: "cuda_plain"
plan {
  launches {
    kernel: "attention_fwd"
    grid: "b * h * s"
    block: "128"
    args: "q" args: "k" args: "v" args: "o" args: "s" args: "d"
  }
}
*/
// One block for each query. Keys come 128 at a time, a thread computes one logit; what was summed
// so far is rescaled when a larger maximum comes. Then a thread adds up columns of the values.
constexpr int kThreads = 128;
constexpr int kColumnsMax = 1024;

extern "C" __global__ void attention_fwd(const float* q, const float* k, const float* v, float* o,
                                         int s, int d) {
  __shared__ float query[kColumnsMax];
  __shared__ float sums[kColumnsMax];
  __shared__ float weights[kThreads];
  __shared__ float scratch[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  const size_t head = blockIdx.x / s;
  const float* keys = k + head * s * d;
  const float* values = v + head * s * d;
  const size_t place = static_cast<size_t>(blockIdx.x) * d;
  for (int c = thread; c < d; c += kThreads) {
    query[c] = q[place + c];
    sums[c] = 0.0f;
  }
  __syncthreads();

  const float scale = 1.0f / sqrtf(static_cast<float>(d));
  const float lowest = -3.402823466e38f;
  float largest = lowest;
  float total = 0.0f;
  for (int j0 = 0; j0 < s; j0 += kThreads) {
    const int count = min(kThreads, s - j0);
    float logit = lowest;
    if (thread < count) {
      const float* key = keys + static_cast<size_t>(j0 + thread) * d;
      float dot = 0.0f;
      for (int c = 0; c < d; ++c) dot += query[c] * key[c];
      logit = dot * scale;
    }
    scratch[thread] = logit;
    __syncthreads();
    for (int half = kThreads / 2; half > 0; half /= 2) {
      if (thread < half) scratch[thread] = fmaxf(scratch[thread], scratch[thread + half]);
      __syncthreads();
    }
    const float new_largest = fmaxf(largest, scratch[0]);
    const float factor = expf(largest - new_largest);
    largest = new_largest;
    weights[thread] = thread < count ? expf(logit - largest) : 0.0f;
    __syncthreads();

    float part = 0.0f;
    for (int j = 0; j < count; ++j) part += weights[j];
    total = total * factor + part;
    for (int c = thread; c < d; c += kThreads) {
      float sum = sums[c] * factor;
      for (int j = 0; j < count; ++j)
        sum += weights[j] * values[static_cast<size_t>(j0 + j) * d + c];
      sums[c] = sum;
    }
    __syncthreads();  // weights and scratch are written again
  }
  for (int c = thread; c < d; c += kThreads) o[place + c] = sums[c] / total;
}
