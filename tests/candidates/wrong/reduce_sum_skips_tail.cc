/* assay-candidate
problem: "reduce_sum"
language: CPP
label: "reduce_sum_skips_tail"
# Expected: INCORRECT (MISMATCH). Leaves out what does not fill a vector.
*/
extern "C" void reduce_sum(const float* x, float* y, int64_t n) {
  double s = 0;
  for (int64_t i = 0; i < n / 8 * 8; ++i) s += x[i];
  *y = static_cast<float>(s);
}
