// No library multiplies packed 2-bit weights: a panel of rows is expanded to float in scratch that
// stays in cache, then OpenBLAS (one thread) does the product. The declarations stand here because
// its headers are not part of the tool chain of candidates.
#include <algorithm>
#include <vector>

extern "C" {
void openblas_set_num_threads(int num_threads);
void cblas_sgemv(int order, int trans, int m, int n, float alpha, const float* a, int lda,
                 const float* x, int incx, float beta, float* y, int incy);
}

extern "C" void gemv_w2a8(const uint8_t* w_packed, const float* w_scale, const int8_t* x,
                          const float* x_scale, float* y, int64_t n, int64_t k) {
  constexpr int kRowMajor = 101;
  constexpr int kNoTranspose = 111;
  constexpr int64_t kPanelFloats = 64 * 1024;
  thread_local std::vector<float> weights, activations;
  static const bool single_threaded = (openblas_set_num_threads(1), true);
  (void)single_threaded;

  const int64_t panel = std::clamp<int64_t>(kPanelFloats / k, 1, n);
  weights.resize(panel * k);
  activations.assign(x, x + k);
  for (int64_t j0 = 0; j0 < n; j0 += panel) {
    const int64_t rows = std::min(panel, n - j0);
    const uint8_t* packed = w_packed + j0 * (k / 4);
    float* out = weights.data();
    for (int64_t i = 0; i < rows * (k / 4); ++i) {
      const int codes = packed[i];
      for (int t = 0; t < 4; ++t) *out++ = static_cast<float>(((codes >> (2 * t)) & 3) - 1);
    }
    cblas_sgemv(kRowMajor, kNoTranspose, static_cast<int>(rows), static_cast<int>(k), x_scale[0],
                weights.data(), static_cast<int>(k), activations.data(), 1, 0.0f, y + j0, 1);
    for (int64_t r = j0; r < j0 + rows; ++r) y[r] *= w_scale[r];
  }
}
