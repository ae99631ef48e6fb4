// Bridges between std::string_view, which our headers use, and absl::string_view, which is another
// type in the distribution's Abseil and the same type in newer ones.
#ifndef ASSAY_BASE_STRINGS_H_
#define ASSAY_BASE_STRINGS_H_

#include <string_view>

#include "absl/strings/string_view.h"

namespace assay {

// For arguments of Abseil functions: absl::StrCat("x ", Av(name)).
inline absl::string_view Av(std::string_view s) { return absl::string_view(s.data(), s.size()); }

// For results of Abseil functions.
inline std::string_view Sv(absl::string_view s) { return std::string_view(s.data(), s.size()); }

}  // namespace assay

#endif  // ASSAY_BASE_STRINGS_H_
