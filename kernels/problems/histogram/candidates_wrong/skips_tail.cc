/* assay-candidate
problem: "histogram"
language: CPP
label: "skips_tail"
*/
// Wrong on purpose: counts in groups of eight and leaves out the rest.
extern "C" void histogram(const int32_t* x, int32_t* counts, int64_t n, int64_t bins) {
  for (int64_t i = 0; i < bins; ++i) counts[i] = 0;
  for (int64_t i = 0; i + 8 <= n; i += 8) {
    for (int64_t t = 0; t < 8; ++t) ++counts[x[i + t]];
  }
}
