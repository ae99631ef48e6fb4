/* assay-candidate
problem: "scan"
language: CPP
label: "plain"
*/
// One running sum in fp64, bound by the latency of an addition.
extern "C" void scan(const float* x, float* y, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    sum += x[i];
    y[i] = static_cast<float>(sum);
  }
}
