// Text in the sources that speaks to whoever judges them. It moves nothing here: no verdict depends
// on what a source says of itself. A notice for those who read sources by hand or by a model.
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "assay/v1/candidate.pb.h"
#include "assay/v1/evaluation.pb.h"
#include "worker/detect/detector.h"

namespace assay {
namespace {

constexpr size_t kFindingsMax = 5;
constexpr const char* kPhrases[] = {"ignore previous", "ignore all previous", "reviewer",
                                    "approve",         "do not flag",         "is correct, do not"};

class ReviewerTextDetector : public Detector {
 public:
  std::string_view name() const override { return "reviewer_text"; }

  std::vector<DetectorFinding> Inspect(const Evidence& evidence) const override {
    std::vector<DetectorFinding> findings;
    if (evidence.candidate == nullptr) return findings;
    for (const v1::SourceFile& file : evidence.candidate->files()) {
      int number = 0;
      for (const absl::string_view line : absl::StrSplit(file.content(), '\n')) {
        ++number;
        const std::string lower = absl::AsciiStrToLower(line);
        for (const char* phrase : kPhrases) {
          if (findings.size() >= kFindingsMax || lower.find(phrase) == lower.npos) continue;
          DetectorFinding finding;
          finding.severity = v1::Finding::NOTICE;
          finding.evidence =
              absl::StrCat("the source speaks to its reader ('", phrase, "'); it decides nothing");
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

std::unique_ptr<Detector> MakeReviewerTextDetector() {
  return std::make_unique<ReviewerTextDetector>();
}

}  // namespace assay
