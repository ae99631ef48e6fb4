// Compiled with the prototype of scan_reference included before it.
extern "C" void scan_reference(const float* x, double* y, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    sum += x[i];
    y[i] = sum;
  }
}
