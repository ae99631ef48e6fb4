#include "worker/sandbox/text.h"

#include <cstddef>
#include <cstdint>

namespace assay {
namespace {

// Length of the well-formed UTF-8 sequence at `text[at]` (Unicode 15, table 3-7); 0 when there is
// none.
size_t SequenceLength(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) -> uint32_t {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0;
  };
  const auto follows = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const uint32_t first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if ((first & 0xf0) == 0xe0) {
    const bool overlong = first == 0xe0 && byte(1) < 0xa0;
    const bool surrogate = first == 0xed && byte(1) > 0x9f;
    return follows(1) && follows(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool overlong = first == 0xf0 && byte(1) < 0x90;
    const bool beyond = first == 0xf4 && byte(1) > 0x8f;
    return follows(1) && follows(2) && follows(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::string CleanText(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t length = SequenceLength(text, at);
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
