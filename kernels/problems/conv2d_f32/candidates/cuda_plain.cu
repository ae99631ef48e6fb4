/* assay-candidate
problem: "conv2d_f32"
language: CUDA_CPP
label: "cuda_plain"
plan {
  launches {
    kernel: "conv2d_f32"
    grid: "ceil_div(n * f * (h - r + 1) * (w - r + 1), 256)"
    block: "256"
    args: "x" args: "weight" args: "y" args: "n" args: "c" args: "h" args: "w" args: "f" args: "r"
  }
}
*/
// One thread for each pixel of the output.
extern "C" __global__ void conv2d_f32(const float* x, const float* weight, float* y, int n, int c,
                                      int h, int w, int f, int r) {
  const int rows = h - r + 1;
  const int cols = w - r + 1;
  const size_t i = static_cast<size_t>(blockIdx.x) * 256 + threadIdx.x;
  if (i >= static_cast<size_t>(n) * f * rows * cols) return;
  const int q = static_cast<int>(i % cols);
  const int p = static_cast<int>(i / cols % rows);
  const size_t filter = i / cols / rows % f;
  const size_t image = i / cols / rows / f;
  float sum = 0.0f;
  for (int channel = 0; channel < c; ++channel) {
    for (int s = 0; s < r; ++s) {
      const float* in = x + ((image * c + channel) * h + p + s) * w + q;
      const float* taps = weight + ((filter * c + channel) * r + s) * r;
      for (int t = 0; t < r; ++t) sum += in[t] * taps[t];
    }
  }
  y[i] = sum;
}
