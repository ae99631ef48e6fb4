/* assay-candidate
problem: "reduce_sum"
language: CPP
label: "reduce_sum_one_f32_chain"
# Expected: INCORRECT (MISMATCH). One f32 accumulator: too inaccurate for 16 million elements.
*/
extern "C" void reduce_sum(const float* x, float* y, int64_t n) {
  float s = 0;
  for (int64_t i = 0; i < n; ++i) s += x[i];
  *y = s;
}
