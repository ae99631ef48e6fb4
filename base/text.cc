#include "base/text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace assay {
namespace {

unsigned char ByteAt(std::string_view text, size_t i) {
  return static_cast<unsigned char>(text[i]);
}

// Whether the sequence at the start of `text`, of `length` bytes, shows as itself and does no more.
bool IsHarmless(std::string_view text, size_t length) {
  const unsigned char lead = ByteAt(text, 0);
  if (length == 1) return lead >= 0x20 && lead != 0x7f;
  const unsigned char second = ByteAt(text, 1);
  // C1 controls, and the marks that turn the direction of text.
  return !(lead == 0xc2 && second < 0xa0) &&
         !(lead == 0xe2 && second == 0x80 && ByteAt(text, 2) >= 0x8e);
}

std::string Escape(std::string_view text, std::string_view kept) {
  std::string out;
  while (!text.empty()) {
    size_t length = Utf8Length(text);
    if (length > 0 &&
        (IsHarmless(text, length) || kept.find(text.front()) != std::string_view::npos)) {
      out.append(text.substr(0, length));
    } else {
      length = 1;
      absl::StrAppend(&out, absl::StrFormat("\\x%02x", ByteAt(text, 0)));
    }
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace

size_t Utf8Length(std::string_view text) {
  const unsigned char lead = ByteAt(text, 0);
  const size_t length = lead < 0x80                   ? 1
                        : lead >= 0xc2 && lead < 0xe0 ? 2
                        : lead >= 0xe0 && lead < 0xf0 ? 3
                        : lead >= 0xf0 && lead < 0xf5 ? 4
                                                      : 0;
  if (length == 0 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((ByteAt(text, i) & 0xc0) != 0x80) return 0;
  }
  if (length < 3) return length;
  const unsigned char second = ByteAt(text, 1);
  const bool overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
  const bool surrogate = lead == 0xed && second >= 0xa0;
  const bool beyond_unicode = lead == 0xf4 && second >= 0x90;
  return overlong || surrogate || beyond_unicode ? 0 : length;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string Printable(std::string_view text) { return Escape(text, "\n\t"); }

std::string PrintableLine(std::string_view text) { return Escape(text, ""); }

}  // namespace assay
