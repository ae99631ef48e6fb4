// Checks of hostile text: names, paths and where they lead, UTF-8. Internal to kernels.
#ifndef ASSAY_KERNELS_TEXT_H_
#define ASSAY_KERNELS_TEXT_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace assay {

// OK for an identifier of [A-Za-z][A-Za-z0-9_]* that C, C++ and the expressions leave free: no
// keyword, no "__", no function of expressions, at most kNameBytesMax bytes. `what` begins the
// message.
absl::Status CheckIdentifier(std::string_view name, std::string_view what);

// The same for a problem's name: [a-z][a-z0-9_]*.
absl::Status CheckProblemId(std::string_view id);

// True for 1 to kNameBytesMax characters of [A-Za-z0-9_.-].
bool IsPlainName(std::string_view name);

// The same for [a-z0-9_-]: the name of an arithmetic contract.
bool IsContractName(std::string_view name);

// OK for a relative path of parts of [A-Za-z0-9_.-] that do not begin with a dot.
absl::Status CheckSourcePath(std::string_view path);

// Where the file `folder`/`path` really is, links followed. NOT_FOUND with reason PATH_NOT_FOUND;
// INVALID_ARGUMENT when that is outside of the folder.
absl::StatusOr<std::string> ResolveInside(const std::string& folder, const std::string& path);

// Position of the first byte that is not valid UTF-8 or is NUL; npos when there is none. Overlong
// forms and surrogates are not valid.
size_t FindBadUtf8(std::string_view text);

// 1-based line of byte `at`.
int LineOf(std::string_view text, size_t at);

// ".cc" of "a/b.cc"; "" when there is none.
std::string_view FileExtension(std::string_view path);

// At most 64 bytes of `text`, escaped, for messages.
std::string Quoted(std::string_view text);

}  // namespace assay

#endif  // ASSAY_KERNELS_TEXT_H_
