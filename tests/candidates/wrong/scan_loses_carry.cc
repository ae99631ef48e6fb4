/* assay-candidate
problem: "scan"
language: CPP
label: "scan_loses_carry"
# Expected: INCORRECT (MISMATCH). Starts again every 1024 elements.
*/
extern "C" void scan(const float* x, float* y, int64_t n) {
  double s = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (i % 1024 == 0) s = 0;
    s += x[i];
    y[i] = static_cast<float>(s);
  }
}
