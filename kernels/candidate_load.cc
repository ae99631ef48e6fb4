// Candidates as folders and single files.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "assay/v1/candidate.pb.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/strings.h"
#include "kernels/candidate.h"
#include "kernels/candidate_files.h"
#include "kernels/problem.h"
#include "kernels/text.h"
#include "kernels/textproto.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr char kSpecFile[] = "candidate.textproto";
constexpr std::string_view kCommentMark = "assay-candidate";
constexpr std::string_view kMalformed = "CANDIDATE_MALFORMED";

absl::Status Malformed(std::string_view message) {
  return ErrorWithReason(absl::StatusCode::kInvalidArgument, kMalformed, message);
}

// Reads one file, with the candidate's reasons on errors.
absl::StatusOr<std::string> Read(const std::string& path) {
  auto content = ReadFile(path, limits::kSourceBytesMax);
  switch (content.status().code()) {
    case absl::StatusCode::kOk:
      return content;
    case absl::StatusCode::kNotFound:
      return ErrorWithReason(absl::StatusCode::kNotFound, "PATH_NOT_FOUND",
                             absl::StrCat("there is no file ", path));
    case absl::StatusCode::kResourceExhausted:
      return TooLarge(absl::StrCat(path, " has more than ", limits::kSourceBytesMax, " bytes"));
    case absl::StatusCode::kInvalidArgument:
      return Malformed(Sv(content.status().message()));
    default:
      return content.status();
  }
}

absl::Status AddFile(const std::string& on_disk, const std::string& path, size_t* bytes,
                     v1::Candidate* candidate) {
  if (static_cast<size_t>(candidate->files_size()) >= limits::kCandidateFilesMax) {
    return TooLarge(absl::StrCat("the candidate has more than ", limits::kCandidateFilesMax,
                                 " files; remove some"));
  }
  ASSAY_ASSIGN_OR_RETURN(std::string content, Read(on_disk));
  ASSAY_RETURN_IF_ERROR(CheckSourceText(on_disk, content, bytes));
  v1::SourceFile* file = candidate->add_files();
  file->set_path(path);
  file->set_content(std::move(content));
  return absl::OkStatus();
}

// A name for people: at most kNameBytesMax characters of [A-Za-z0-9_.-].
std::string PlainName(std::string_view text) {
  std::string out(text.substr(0, limits::kNameBytesMax));
  for (char& c : out) {
    if (!IsPlainName(std::string_view(&c, 1))) c = '_';
  }
  return out;
}

// Reconciles the problem that the text names with the one that the caller gave.
absl::Status SettleProblem(std::string_view problem, std::string_view place,
                           v1::CandidateSpec* spec) {
  const std::string given = ProblemId(problem);
  const std::string own = ProblemId(spec->problem());
  if (!given.empty() && !own.empty() && given != own) {
    return ErrorWithReason(
        absl::StatusCode::kInvalidArgument, "PROBLEM_MISMATCH",
        absl::StrCat(Av(place), ": the candidate is for problem ", Quoted(own),
                     ", but --problem names ", Quoted(given), "; correct one of them"));
  }
  spec->set_problem(own.empty() ? given : own);
  return absl::OkStatus();
}

// Relative paths of the folder's sources of `language` and of its headers, sorted. Links are
// followed when they stay in the folder; hidden entries are passed over.
absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& root, int language,
                                                    bool all_sources) {
  std::vector<std::string> out;
  std::error_code error;
  size_t entries = 0;
  for (fs::recursive_directory_iterator it(root, error), end; !error && it != end;
       it.increment(error)) {
    if (++entries > limits::kCandidateFolderEntriesMax) {
      return TooLarge(absl::StrCat(root, " has more than ", limits::kCandidateFolderEntriesMax,
                                   " entries; give a folder that holds the candidate only"));
    }
    const bool hidden = it->path().filename().string()[0] == '.';
    std::error_code ignored;
    if (it->is_directory(ignored)) {
      const bool deep = it.depth() + 1 >= static_cast<int>(limits::kCandidateFolderDepthMax);
      if (hidden || deep) it.disable_recursion_pending();
      continue;
    }
    const std::string path = it->path().lexically_relative(root).generic_string();
    if (hidden || !(IsHeader(path) || (all_sources && IsSourceOf(language, path)))) continue;
    out.push_back(path);
  }
  if (error) return ErrnoError(error.value(), absl::StrCat("cannot list ", root));
  std::sort(out.begin(), out.end());
  return out;
}

// The file's place on disk; refuses one that lies outside of the folder once links are followed.
absl::StatusOr<std::string> InsideFolder(const std::string& folder, const std::string& path) {
  auto place = ResolveInside(folder, path);
  if (absl::IsNotFound(place.status())) {
    return ErrorWithReason(
        absl::StatusCode::kNotFound, "PATH_NOT_FOUND",
        absl::StrCat(place.status().message(), "; add the file or correct `sources`"));
  }
  if (!place.ok()) return Malformed(Sv(place.status().message()));
  return place;
}

absl::Status LoadFolder(const std::string& path, std::string_view problem,
                        v1::Candidate* candidate) {
  const std::string spec_path = absl::StrCat(path, "/", kSpecFile);
  v1::CandidateSpec* spec = candidate->mutable_spec();
  const auto spec_on_disk = InsideFolder(path, kSpecFile);
  if (absl::IsNotFound(spec_on_disk.status())) {
    return Malformed(
        absl::StrCat(path, " has no ", kSpecFile, "; write one, or submit a single source file"));
  }
  if (!spec_on_disk.ok()) return spec_on_disk.status();
  ASSAY_ASSIGN_OR_RETURN(const std::string text, Read(*spec_on_disk));
  ASSAY_RETURN_IF_ERROR(ParseTextProto(text, spec_path, TextPosition(), kMalformed, spec));
  ASSAY_RETURN_IF_ERROR(SettleProblem(problem, spec_path, spec));

  ASSAY_ASSIGN_OR_RETURN(std::vector<std::string> paths,
                         ListFolder(path, spec->language(), spec->sources().empty()));
  for (const std::string& source : spec->sources()) {
    if (std::find(paths.begin(), paths.end(), source) == paths.end()) paths.push_back(source);
  }
  size_t bytes = 0;
  for (const std::string& file : paths) {
    const absl::Status safe = CheckSourcePath(file);
    if (!safe.ok()) return Malformed(absl::StrCat(path, ": ", safe.message()));
    ASSAY_ASSIGN_OR_RETURN(const std::string on_disk, InsideFolder(path, file));
    ASSAY_RETURN_IF_ERROR(AddFile(on_disk, file, &bytes, candidate));
  }
  if (spec->sources().empty()) {
    for (const std::string& source : CandidateSources(*candidate)) spec->add_sources(source);
  }
  if (spec->label().empty()) {
    std::error_code error;
    spec->set_label(PlainName(fs::canonical(path, error).filename().string()));
  }
  return Annotate(ValidateCandidate(*candidate), spec_path);
}

struct Comment {
  std::string_view text;
  TextPosition start;
};

// The leading comment of a source, when it is a candidate's: blanks may stand before it.
absl::StatusOr<std::optional<Comment>> FindComment(std::string_view source, std::string_view file) {
  const size_t open = source.find_first_not_of(" \t\r\n");
  if (open == std::string_view::npos || source.substr(open, 2) != "/*") {
    return std::optional<Comment>();
  }
  const size_t mark = source.find_first_not_of(" \t\r\n", open + 2);
  if (mark == std::string_view::npos || source.substr(mark, kCommentMark.size()) != kCommentMark) {
    return std::optional<Comment>();
  }
  const size_t start = mark + kCommentMark.size();
  const size_t close = source.find("*/", start);
  if (close == std::string_view::npos) {
    return Malformed(absl::StrCat(Av(file), ":", LineOf(source, open),
                                  ": the candidate comment is not closed; end it with */"));
  }
  const size_t line_start = source.rfind('\n', start) + 1;  // 0 when there is none
  return std::optional<Comment>(
      Comment{source.substr(start, close - start),
              {LineOf(source, start), static_cast<int>(start - line_start) + 1}});
}

absl::Status LoadSingleFile(const std::string& path, std::string_view problem,
                            v1::Candidate* candidate) {
  const std::string base = fs::path(path).filename().string();
  const std::string name = PlainName(base[0] == '.' ? "_" + base : base);
  const std::string folder = fs::path(path).parent_path().string();
  ASSAY_ASSIGN_OR_RETURN(const std::string on_disk,
                         InsideFolder(folder.empty() ? "." : folder, base));
  size_t bytes = 0;
  ASSAY_RETURN_IF_ERROR(AddFile(on_disk, name, &bytes, candidate));
  v1::CandidateSpec* spec = candidate->mutable_spec();
  ASSAY_ASSIGN_OR_RETURN(const std::optional<Comment> comment,
                         FindComment(candidate->files(0).content(), path));
  const auto language = static_cast<v1::Language>(LanguageOf(name));
  if (language == v1::LANGUAGE_UNSPECIFIED) {
    return Malformed(absl::StrCat(path,
                                  " is no source file; its name must end in .cc, .cpp, .cxx, "
                                  ".c++, .cu or .ptx"));
  }
  if (comment.has_value()) {
    ASSAY_RETURN_IF_ERROR(ParseTextProto(comment->text, path, comment->start, kMalformed, spec));
  } else if (language != v1::CPP) {
    return Malformed(absl::StrCat(path, ":1: a device candidate must begin with a comment ",
                                  "/* assay-candidate ... */ that holds its launch plan"));
  }
  ASSAY_RETURN_IF_ERROR(SettleProblem(problem, path, spec));
  if (spec->language() == v1::LANGUAGE_UNSPECIFIED) spec->set_language(language);
  if (spec->language() != language) {
    return Malformed(absl::StrCat(path, ": language ", v1::Language_Name(spec->language()),
                                  " does not fit the file's name; correct one of them"));
  }
  const auto& sources = spec->sources();
  if (sources.size() > 1 || (sources.size() == 1 && sources[0] != name)) {
    return Malformed(absl::StrCat(path, ": a single file is its only source; remove `sources`"));
  }
  if (sources.empty()) spec->add_sources(name);
  if (spec->label().empty()) spec->set_label(PlainName(fs::path(name).stem().string()));
  return Annotate(ValidateCandidate(*candidate), path);
}

}  // namespace

bool HasCandidateComment(std::string_view source) {
  const absl::StatusOr<std::optional<Comment>> comment = FindComment(source, "");
  return !comment.ok() || comment->has_value();
}

absl::Status LoadCandidate(const std::string& path, std::string_view problem,
                           v1::Candidate* candidate) {
  candidate->Clear();
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    return ErrorWithReason(absl::StatusCode::kNotFound, "PATH_NOT_FOUND",
                           absl::StrCat("there is no file or folder ", path));
  }
  if (error) return ErrnoError(error.value(), absl::StrCat("cannot look at ", path));
  if (fs::is_directory(status)) return LoadFolder(path, problem, candidate);
  return LoadSingleFile(path, problem, candidate);
}

}  // namespace assay
