// Text that others wrote: whether it is UTF-8, and what of it may go to a terminal, which it could
// drive.
#ifndef ASSAY_BASE_TEXT_H_
#define ASSAY_BASE_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace assay {

// Bytes of the well-formed UTF-8 sequence at the start of `text`, which is not empty (Unicode 15,
// table 3-7: no overlong forms, no surrogates); 0 when there is none.
size_t Utf8Length(std::string_view text);

bool IsUtf8(std::string_view text);

// Printable text on one or more lines: control characters but newline and tab become \xNN, so do
// invalid UTF-8 and what turns the direction of text.
std::string Printable(std::string_view text);

// The same on one line, for messages: newline and tab become \xNN too.
std::string PrintableLine(std::string_view text);

}  // namespace assay

#endif  // ASSAY_BASE_TEXT_H_
