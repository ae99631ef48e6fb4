/* assay-candidate
problem: "transpose"
language: CPP
label: "transpose_bf16"
# Expected: INCORRECT (MISMATCH). Moves the upper halves of the elements.
*/
#include <bit>
extern "C" void transpose(const float* x, float* y, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) {
      const uint32_t bits = std::bit_cast<uint32_t>(x[i * cols + j]) & 0xffff0000u;
      y[j * rows + i] = std::bit_cast<float>(bits);
    }
  }
}
