// Words in the source that a kernel has no honest use for, and that leave no symbol in what is
// built: clocks and system calls by an instruction. A notice only: the guest's walls and the
// runner's clock do not depend on it. What libraries give is seen by library_calls.

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "assay/v1/candidate.pb.h"
#include "assay/v1/evaluation.pb.h"
#include "worker/detect/detector.h"

namespace assay {
namespace {

constexpr size_t kFindingsMax = 20;
constexpr const char* kWords[] = {"rdtsc",
                                  "rdtscp",
                                  "__rdtsc",
                                  "__rdtscp",
                                  "rdpmc",
                                  "__rdpmc",
                                  "syscall",
                                  "sysenter",
                                  "__builtin_ia32_rdtsc",
                                  "__builtin_ia32_rdtscp"};

bool IsWordChar(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }

bool HasWord(absl::string_view line, absl::string_view word) {
  for (size_t at = line.find(word); at != absl::string_view::npos; at = line.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !IsWordChar(line[at - 1])) && (end == line.size() || !IsWordChar(line[end]))) {
      return true;
    }
  }
  return false;
}

// Removes comments; `inside` carries an open block comment from line to line.
std::string WithoutComments(absl::string_view line, bool* inside) {
  std::string out;
  for (size_t i = 0; i < line.size(); ++i) {
    const absl::string_view rest = line.substr(i);
    if (*inside) {
      if (absl::string_view(rest).substr(0, 2) == "*/") {
        *inside = false;
        ++i;
      }
    } else if (rest.substr(0, 2) == "/*") {
      *inside = true;
      ++i;
    } else if (rest.substr(0, 2) == "//") {
      break;
    } else {
      out += line[i];
    }
  }
  return out;
}

class ForbiddenSourceDetector : public Detector {
 public:
  std::string_view name() const override { return "forbidden_source"; }

  std::vector<DetectorFinding> Inspect(const Evidence& evidence) const override {
    std::vector<DetectorFinding> findings;
    if (evidence.candidate == nullptr) return findings;
    for (const v1::SourceFile& file : evidence.candidate->files()) {
      int number = 0;
      bool inside = false;
      for (const absl::string_view line : absl::StrSplit(file.content(), '\n')) {
        ++number;
        const std::string code = WithoutComments(line, &inside);
        for (const char* word : kWords) {
          if (findings.size() >= kFindingsMax || !HasWord(code, word)) continue;
          DetectorFinding finding;
          finding.severity = v1::Finding::NOTICE;
          finding.evidence = absl::StrCat("the source uses '", word, "'");
          finding.file = file.path();
          finding.line = number;
          findings.push_back(std::move(finding));
          break;  // one finding a line
        }
      }
    }
    return findings;
  }
};

}  // namespace

std::unique_ptr<Detector> MakeForbiddenSourceDetector() {
  return std::make_unique<ForbiddenSourceDetector>();
}

}  // namespace assay
