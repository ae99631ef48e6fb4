// Compiled with the prototype of histogram_reference included before it.
extern "C" void histogram_reference(const int32_t* x, int32_t* counts, int64_t n, int64_t bins) {
  for (int64_t i = 0; i < bins; ++i) counts[i] = 0;
  for (int64_t i = 0; i < n; ++i) ++counts[x[i]];
}
