extern "C" void row_mean_reference(const float* x, double* y, int64_t rows, int64_t cols, int64_t pitch) {
  for (int64_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (int64_t j = 0; j < cols; ++j) sum += x[r * pitch + j];
    y[r] = sum / static_cast<double>(cols);
  }
}
