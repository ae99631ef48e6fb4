// Which headers of the toolkit a source begins with, so that they can come from a precompiled
// header. Pure.
#ifndef ASSAY_WORKER_BUILDER_HOISTED_HEADERS_H_
#define ASSAY_WORKER_BUILDER_HOISTED_HEADERS_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// Names of the leading #include lines that may be moved to the front of the program without a
// change of meaning: between the start and them stand blanks, comments, and includes of other
// system headers, nothing else. Each once, at most limits::kHoistedHeadersMax. `is_toolkit` says
// whether a name is a header of the toolkit, `is_candidate` whether one of the candidate's files
// has it.
std::vector<std::string> HoistedHeaders(
    std::string_view source, const std::function<bool(const std::string&)>& is_toolkit,
    const std::function<bool(const std::string&)>& is_candidate);

}  // namespace assay

#endif  // ASSAY_WORKER_BUILDER_HOISTED_HEADERS_H_
