/* assay-candidate
problem: "transpose"
language: CPP
label: "transpose_copy"
# Expected: INCORRECT (MISMATCH). Copies.
*/
extern "C" void transpose(const float* x, float* y, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows * cols; ++i) y[i] = x[i];
}
