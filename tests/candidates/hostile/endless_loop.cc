/* assay-candidate
problem: "vector_add"
language: CPP
label: "endless_loop"
# Expected: TIMED_OUT (TIMED_OUT). Never returns.
*/
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  (void)a, (void)b;
  volatile float* out = c;
  for (;;) out[0] = static_cast<float>(n);
}
