// Text that others wrote, on its way to a terminal: it could hold sequences that drive it.
#ifndef ASSAY_BASE_TEXT_H_
#define ASSAY_BASE_TEXT_H_

#include <string>
#include <string_view>

namespace assay {

// As protobuf understands it: no overlong forms, no surrogates.
bool IsUtf8(std::string_view text);

// Printable text on one or more lines: control characters but newline and tab become \xNN, so do
// invalid UTF-8 and what turns the direction of text.
std::string Printable(std::string_view text);

// The same on one line, for messages: newline and tab become \xNN too.
std::string PrintableLine(std::string_view text);

}  // namespace assay

#endif  // ASSAY_BASE_TEXT_H_
