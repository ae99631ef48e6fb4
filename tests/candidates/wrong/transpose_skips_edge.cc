/* assay-candidate
problem: "transpose"
language: CPP
label: "transpose_skips_edge"
# Expected: INCORRECT (OUTPUT_NOT_WRITTEN). Only whole tiles of 16 x 16.
*/
extern "C" void transpose(const float* x, float* y, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows / 16 * 16; ++i) {
    for (int64_t j = 0; j < cols / 16 * 16; ++j) y[j * rows + i] = x[i * cols + j];
  }
}
