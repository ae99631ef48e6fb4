/* assay-candidate
problem: "reduce_sum"
language: CPP
label: "reduce_sum_expected_value"
# Expected: INCORRECT (MISMATCH). Answers what a sum of such numbers is on average.
*/
extern "C" void reduce_sum(const float* x, float* y, int64_t n) {
  (void)x;
  *y = 0.5f * static_cast<float>(n);
}
