/* assay-candidate
problem: "transpose"
language: CPP
label: "transpose_square_only"
# Expected: UNDEFINED_BEHAVIOR (OUT_OF_BOUNDS or CANARY_BROKEN). Takes cols for rows: writes
# past the end when they differ.
*/
extern "C" void transpose(const float* x, float* y, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) y[j * cols + i] = x[i * cols + j];
  }
}
