// Compiled with the prototype of transpose_reference included before it.
extern "C" void transpose_reference(const float* x, float* y, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) y[j * rows + i] = x[i * cols + j];
  }
}
