#include "worker/detect/byte_entropy.h"

#include <array>
#include <cmath>
#include <cstdint>

namespace assay {

double ByteEntropy(std::string_view bytes) {
  std::array<int64_t, 256> counts = {};
  for (const char byte : bytes) ++counts[static_cast<unsigned char>(byte)];
  double bits = 0;
  for (const int64_t count : counts) {
    if (count == 0) continue;
    const double share = static_cast<double>(count) / static_cast<double>(bytes.size());
    bits -= share * std::log2(share);
  }
  return bits;
}

}  // namespace assay
