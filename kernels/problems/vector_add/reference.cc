// Compiled with the prototype of vector_add_reference included before it.
extern "C" void vector_add_reference(const float* a, const float* b, double* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = double{a[i]} + double{b[i]};
}
