/* assay-candidate
problem: "softmax"
language: CPP
label: "softmax_zeros"
# Expected: INCORRECT (MISMATCH). Results are small, but not 0.
*/
extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t cols) {
  (void)x;
  for (int64_t i = 0; i < rows * cols; ++i) y[i] = 0;
}
