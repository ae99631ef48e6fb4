/* assay-candidate
problem: "gemv_w2a8"
language: CPP
label: "sixteen_bit_sum"
*/
// Wrong on purpose: sums stay in 16 bits, which random inputs of moderate length do not notice.
extern "C" void gemv_w2a8(const uint8_t* w_packed, const float* w_scale, const int8_t* x,
                          const float* x_scale, float* y, int64_t n, int64_t k) {
  for (int64_t j = 0; j < n; ++j) {
    int16_t sum = 0;
    for (int64_t p = 0; p < k; ++p) {
      const int code = (w_packed[j * (k / 4) + p / 4] >> (2 * (p % 4))) & 3;
      sum = static_cast<int16_t>(sum + (code - 1) * x[p]);
    }
    y[j] = static_cast<float>(sum) * w_scale[j] * x_scale[0];
  }
}
