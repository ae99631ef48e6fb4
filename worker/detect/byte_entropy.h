// Entropy of bytes: how random data looks. Pure.
#ifndef ASSAY_WORKER_DETECT_BYTE_ENTROPY_H_
#define ASSAY_WORKER_DETECT_BYTE_ENTROPY_H_

#include <string_view>

namespace assay {

// Bits a byte, 0 to 8, by the share of each value; 0 for no bytes.
double ByteEntropy(std::string_view bytes);

}  // namespace assay

#endif  // ASSAY_WORKER_DETECT_BYTE_ENTROPY_H_
