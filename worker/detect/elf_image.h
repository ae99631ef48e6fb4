// What an ELF file says of itself: its sections, the libraries that it needs, and the symbols that
// it takes from them. Nothing is executed, and the bytes are hostile: what does not fit is left
// out.
#ifndef ASSAY_WORKER_DETECT_ELF_IMAGE_H_
#define ASSAY_WORKER_DETECT_ELF_IMAGE_H_

#include <cstdint>
#include <string_view>
#include <vector>

namespace assay {

struct ElfSection {
  std::string_view name;
  std::string_view bytes;
  bool is_loaded = false;
  bool is_code = false;
};

struct ElfSymbol {
  std::string_view name;
  std::string_view library;  // by its version, e.g. "libm.so.6"; empty: unversioned
};

// All views are of the bytes that it was read from.
struct ElfImage {
  std::vector<ElfSection> sections;      // that have bytes in the file
  std::vector<std::string_view> needed;  // libraries, by DT_NEEDED
  std::vector<ElfSymbol> undefined;      // dynamic symbols that others define
};

// Empty for what is no 64-bit little-endian ELF file.
ElfImage ReadElf(std::string_view bytes);

}  // namespace assay

#endif  // ASSAY_WORKER_DETECT_ELF_IMAGE_H_
