/* assay-candidate
problem: "reduce_sum"
language: CPP
label: "reduce_sum_writes_nothing"
# Expected: INCORRECT (OUTPUT_NOT_WRITTEN). Returns at once.
*/
extern "C" void reduce_sum(const float* x, float* y, int64_t n) { (void)x, (void)y, (void)n; }
