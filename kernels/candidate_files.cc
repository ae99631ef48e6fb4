#include "kernels/candidate_files.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "assay/v1/candidate.pb.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/strings.h"
#include "kernels/candidate.h"
#include "kernels/text.h"

namespace assay {

absl::Status TooLarge(std::string_view message) {
  return ErrorWithReason(absl::StatusCode::kInvalidArgument, "CANDIDATE_TOO_LARGE", message);
}

absl::Status CheckSourceText(std::string_view path, std::string_view content, size_t* bytes) {
  *bytes += content.size();
  if (content.size() > limits::kSourceBytesMax || *bytes > limits::kCandidateBytesMax) {
    return TooLarge(absl::StrCat(Av(path), " has ", content.size(), " bytes; at most ",
                                 limits::kSourceBytesMax, " a file and ",
                                 limits::kCandidateBytesMax, " in all are allowed"));
  }
  const size_t bad = FindBadUtf8(content);
  if (bad == std::string_view::npos) return absl::OkStatus();
  return ErrorWithReason(absl::StatusCode::kInvalidArgument, "SOURCE_NOT_UTF8",
                         absl::StrCat(Av(path), ":", LineOf(content, bad),
                                      ": the text is not UTF-8 without NUL; save it as UTF-8"));
}

int LanguageOf(std::string_view path) {
  const std::string_view extension = FileExtension(path);
  if (extension == ".cc" || extension == ".cpp" || extension == ".cxx" || extension == ".c++") {
    return v1::CPP;
  }
  if (extension == ".cu") return v1::CUDA_CPP;
  if (extension == ".ptx") return v1::PTX;
  return v1::LANGUAGE_UNSPECIFIED;
}

bool IsSourceOf(int language, std::string_view path) {
  return language != v1::LANGUAGE_UNSPECIFIED && LanguageOf(path) == language;
}

bool IsHeader(std::string_view path) {
  const std::string_view extension = FileExtension(path);
  constexpr std::string_view kHeaders[] = {".h", ".hpp", ".hxx", ".cuh", ".inc", ".inl"};
  return std::ranges::find(kHeaders, extension) != std::end(kHeaders);
}

std::string_view SourceExtensions(int language) {
  if (language == v1::CPP) return ".cc, .cpp or .cxx";
  return language == v1::CUDA_CPP ? ".cu" : ".ptx";
}

std::vector<std::string> CandidateSources(const v1::Candidate& candidate) {
  const v1::CandidateSpec& spec = candidate.spec();
  if (!spec.sources().empty()) return {spec.sources().begin(), spec.sources().end()};
  std::vector<std::string> out;
  for (const v1::SourceFile& file : candidate.files()) {
    if (IsSourceOf(spec.language(), file.path())) out.push_back(file.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace assay
