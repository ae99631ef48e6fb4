/* assay-candidate
problem: "histogram"
language: CPP
label: "sixteen_bit_counters"
*/
// Wrong on purpose: counters of 16 bits, which wrap when one bin takes more than 65535 elements.
#include <vector>

extern "C" void histogram(const int32_t* x, int32_t* counts, int64_t n, int64_t bins) {
  std::vector<uint16_t> narrow(bins);
  for (int64_t i = 0; i < n; ++i) ++narrow[x[i]];
  for (int64_t i = 0; i < bins; ++i) counts[i] = narrow[i];
}
