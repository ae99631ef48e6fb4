#include "client/audit/report.h"

#include <google/protobuf/text_format.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace assay {
namespace {

// Text of mutants holds code: in a table its bars would end a cell.
std::string Cell(const std::string& text) {
  return absl::StrReplaceAll(text, {{"|", "\\|"}, {"\n", " "}});
}

}  // namespace

std::string AuditStepResult(const v1::AuditStep& step) {
  if (step.skipped()) return "skipped";
  return step.passed() ? "passed" : "failed";
}

std::string AuditMarkdown(const v1::ProblemAudit& audit) {
  std::string out = absl::StrCat(
      "# Audit of ", audit.problem(), ", version ", audit.problem_version(), ": ",
      audit.passed() ? "admitted" : "refused",
      "\n\nMade by `assay problems audit`; what the steps are stands in `client/audit/README.md`. "
      "Seed ",
      audit.seed(), ", harness ", audit.harness_version(),
      ".\n\n| step | result | |\n|---|---|---|\n");
  for (const v1::AuditStep& step : audit.steps()) {
    absl::StrAppend(&out, "| ", step.name(), " | ", AuditStepResult(step), " | ",
                    Cell(step.summary()), " |\n");
  }
  for (const v1::AuditStep& step : audit.steps()) {
    for (const std::string& failure : step.failures()) {
      absl::StrAppend(&out, "\n* ", step.name(), ": ", Cell(failure));
    }
  }
  absl::StrAppend(&out,
                  "\n| mutants | made | not compiled | without witness | with | rejected |\n"
                  "|---|---:|---:|---:|---:|---:|\n");
  int made = 0, uncompiled = 0, without = 0, with = 0, rejected = 0;
  for (const v1::MutantFamily& family : audit.families()) {
    absl::StrAppend(&out, "| ", family.name(), " | ", family.generated_count(), " | ",
                    family.uncompiled_count(), " | ",
                    family.discarded_count() - family.uncompiled_count(), " | ",
                    family.mutant_count(), " | ", family.rejected_count(), " |\n");
    made += family.generated_count();
    uncompiled += family.uncompiled_count();
    without += family.discarded_count() - family.uncompiled_count();
    with += family.mutant_count();
    rejected += family.rejected_count();
  }
  absl::StrAppend(&out, "| all | ", made, " | ", uncompiled, " | ", without, " | ", with, " | ",
                  rejected, " |\n");
  for (const v1::MutantFamily& family : audit.families()) {
    for (const std::string& survivor : family.survivors()) {
      absl::StrAppend(&out, "\n* survivor (", family.name(), "): ", Cell(survivor));
    }
    for (const std::string& without_witness : family.without_witness()) {
      absl::StrAppend(&out, "\n* without witness (", family.name(), "): ", Cell(without_witness));
    }
  }
  return out.back() == '\n' ? out : out + "\n";
}

std::string AuditTextProto(const v1::ProblemAudit& audit) {
  v1::ProblemAudit timeless = audit;
  timeless.clear_time();
  std::string text;
  google::protobuf::TextFormat::PrintToString(timeless, &text);
  return absl::StrCat(
      "# proto-file: assay/v1/problem.proto\n# proto-message: "
      "assay.v1.ProblemAudit\n\n",
      text);
}

}  // namespace assay
