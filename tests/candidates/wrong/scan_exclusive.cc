/* assay-candidate
problem: "scan"
language: CPP
label: "scan_exclusive"
# Expected: INCORRECT (MISMATCH). Leaves out the element itself.
*/
extern "C" void scan(const float* x, float* y, int64_t n) {
  double s = 0;
  for (int64_t i = 0; i < n; ++i) {
    y[i] = static_cast<float>(s);
    s += x[i];
  }
}
