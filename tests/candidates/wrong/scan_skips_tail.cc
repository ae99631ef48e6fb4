/* assay-candidate
problem: "scan"
language: CPP
label: "scan_skips_tail"
# Expected: INCORRECT (OUTPUT_NOT_WRITTEN). Leaves out what does not fill a block.
*/
extern "C" void scan(const float* x, float* y, int64_t n) {
  double s = 0;
  for (int64_t i = 0; i < n / 32 * 32; ++i) {
    s += x[i];
    y[i] = static_cast<float>(s);
  }
}
