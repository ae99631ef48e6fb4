#include "worker/detect/ptx_tally.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "assay/v1/evaluation.pb.h"
#include "base/strings.h"

namespace assay {
namespace {

constexpr size_t kExamplesMax = 4;
constexpr size_t kNameBytesMax = 200;  // of what the candidate named

}  // namespace

void PtxTally::Add(std::string_view kind, std::string_view example, const PtxStatement& statement) {
  auto entry = std::find_if(entries_.begin(), entries_.end(),
                            [&](const Entry& known) { return known.kind == kind; });
  if (entry == entries_.end()) {
    entry = entries_.insert(entries_.end(), Entry());
    entry->kind = kind;
    entry->function = std::string(statement.name.substr(0, kNameBytesMax));
    entry->ptx_line = statement.ptx_line;
    entry->file = statement.file;
    entry->line = statement.line;
  }
  if (entry->count == 0 || entry->last_at != statement.at) ++entry->count;
  entry->last_at = statement.at;
  const std::string shown(example.substr(0, kNameBytesMax));
  if (entry->examples.size() < kExamplesMax &&
      std::find(entry->examples.begin(), entry->examples.end(), shown) == entry->examples.end()) {
    entry->examples.push_back(shown);
  }
}

std::vector<DetectorFinding> PtxTally::Notices(const std::map<int, std::string_view>& files) const {
  std::vector<DetectorFinding> findings;
  for (const Entry& entry : entries_) {
    DetectorFinding finding;
    finding.severity = v1::Finding::NOTICE;
    finding.evidence = absl::StrCat("the device code has ", entry.count, " ", Av(entry.kind), " (",
                                    absl::StrJoin(entry.examples, ", "), "), the first in ",
                                    entry.function, " at PTX line ", entry.ptx_line);
    const auto file = files.find(entry.file);
    if (file != files.end() && entry.line > 0) {
      finding.file = std::string(file->second.substr(0, kNameBytesMax));
      finding.line = entry.line;
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace assay
