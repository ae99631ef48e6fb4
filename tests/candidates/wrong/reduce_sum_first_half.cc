/* assay-candidate
problem: "reduce_sum"
language: CPP
label: "reduce_sum_first_half"
# Expected: INCORRECT (MISMATCH). Sums the first half and doubles it.
*/
extern "C" void reduce_sum(const float* x, float* y, int64_t n) {
  double s = 0;
  for (int64_t i = 0; i < (n + 1) / 2; ++i) s += x[i];
  *y = static_cast<float>(2 * s);
}
