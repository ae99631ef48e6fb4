// Hostile output made fit for messages: valid UTF-8 without control characters.
#ifndef ASSAY_WORKER_SANDBOX_TEXT_H_
#define ASSAY_WORKER_SANDBOX_TEXT_H_

#include <string>
#include <string_view>

namespace assay {

// Newlines and tabs stay; other control characters, and bytes that are not UTF-8, become '?'.
std::string CleanText(std::string_view text);

}  // namespace assay

#endif  // ASSAY_WORKER_SANDBOX_TEXT_H_
