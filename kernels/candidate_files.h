// Rules for a candidate's files that loading and admission share. Internal to kernels.
#ifndef ASSAY_KERNELS_CANDIDATE_FILES_H_
#define ASSAY_KERNELS_CANDIDATE_FILES_H_

#include <cstddef>
#include <string_view>

#include "absl/status/status.h"

namespace assay {

// INVALID_ARGUMENT with reason CANDIDATE_TOO_LARGE.
absl::Status TooLarge(std::string_view message);

// Size, encoding. Adds the content's size to `bytes`, which counts the whole candidate.
absl::Status CheckSourceText(std::string_view path, std::string_view content, size_t* bytes);

// `language` as in assay.v1.Language.
bool IsSourceOf(int language, std::string_view path);
bool IsHeader(std::string_view path);
// For messages, e.g. ".cc, .cpp, .cxx or .c++".
std::string_view SourceExtensions(int language);
// LANGUAGE_UNSPECIFIED when the extension says nothing.
int LanguageOf(std::string_view path);

}  // namespace assay

#endif  // ASSAY_KERNELS_CANDIDATE_FILES_H_
