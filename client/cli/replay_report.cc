#include "client/cli/replay_report.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "base/text.h"
#include "client/cli/output.h"

namespace assay {
namespace {

std::string VerdictText(const v1::Outcome& outcome) {
  return absl::StrCat(v1::Verdict_Name(outcome.verdict()), outcome.reason().empty() ? "" : " ",
                      PrintableLine(outcome.reason()));
}

// What a finding is, apart from what it measured.
std::string FindingKey(const v1::Finding& finding) {
  std::string key = absl::StrCat(v1::Finding::Severity_Name(finding.severity()), " ",
                                 PrintableLine(finding.detector()));
  if (!finding.workload().empty()) {
    absl::StrAppend(&key, " in ", PrintableLine(finding.workload()));
  }
  if (!finding.file().empty()) {
    absl::StrAppend(&key, " at ", PrintableLine(finding.file()), ":", finding.line());
  }
  return key;
}

std::multimap<std::string, std::string> Findings(const v1::Outcome& outcome) {
  std::multimap<std::string, std::string> findings;  // key, evidence
  for (const v1::Finding& finding : outcome.findings()) {
    findings.emplace(FindingKey(finding), PrintableLine(finding.evidence()));
  }
  return findings;
}

}  // namespace

ReplayReport CompareReplay(const v1::Evaluation& original, const v1::Evaluation& replay) {
  ReplayReport report{.same = true, .lines = {}};
  const auto differ = [&report](std::string line) {
    report.same = false;
    report.lines.push_back(std::move(line));
  };
  const v1::Outcome& before = original.outcome();
  const v1::Outcome& after = replay.outcome();
  if (before.verdict() != after.verdict() || before.reason() != after.reason()) {
    differ(absl::StrCat("verdict: was ", VerdictText(before), ", is ", VerdictText(after)));
  }
  std::multimap<std::string, std::string> left = Findings(after);
  for (const auto& [key, evidence] : Findings(before)) {
    auto found = left.find(key);
    if (found == left.end()) {
      differ(absl::StrCat("finding: was ", key, ", is gone (", evidence, ")"));
      continue;
    }
    if (found->second != evidence) {
      report.lines.push_back(
          absl::StrCat("evidence of ", key, ": was '", evidence, "', is '", found->second, "'"));
    }
    left.erase(found);
  }
  for (const auto& [key, evidence] : left) {
    differ(absl::StrCat("finding: is new, ", key, " (", evidence, ")"));
  }
  if (before.environment().harness_version() != after.environment().harness_version()) {
    report.lines.push_back(
        absl::StrCat("harness: was ", PrintableLine(before.environment().harness_version()),
                     ", is ", PrintableLine(after.environment().harness_version())));
  }
  return report;
}

std::string ReplayText(const v1::Evaluation& original, const v1::Evaluation& replay,
                       const ReplayReport& report) {
  std::string out = report.same
                        ? absl::StrCat("same verdict, reason and findings as ", original.name(),
                                       ": ", VerdictText(replay.outcome()),
                                       ", findings: ", replay.outcome().findings_size(), "\n")
                        : absl::StrCat("not the same as ", original.name(), "\n");
  for (const std::string& line : report.lines) absl::StrAppend(&out, "  ", line, "\n");
  return out;
}

}  // namespace assay
