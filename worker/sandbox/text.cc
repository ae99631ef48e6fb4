#include "worker/sandbox/text.h"

#include <cstddef>

#include "base/text.h"

namespace assay {

std::string CleanText(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t length = Utf8Length(text.substr(at));
    const auto byte = static_cast<unsigned char>(text[at]);
    const bool control =
        length == 1 && (byte < 0x20 || byte == 0x7f) && byte != '\n' && byte != '\t';
    if (length == 0 || control) {
      clean.push_back('?');
      ++at;
    } else {
      clean.append(text.substr(at, length));
      at += length;
    }
  }
  return clean;
}

}  // namespace assay
