/* assay-candidate
problem: "reduce_sum"
language: CPP
label: "plain"
*/
// One chain of additions in fp64: accurate, and bound by the latency of an addition.
extern "C" void reduce_sum(const float* x, float* y, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  *y = static_cast<float>(sum);
}
