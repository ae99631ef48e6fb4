// Text of candidates in everything that the command line prints.
#include <google/protobuf/util/json_util.h>

#include <algorithm>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "assay/v1/evaluation.pb.h"
#include "assay/v1/gate.pb.h"
#include "base/nasty_text.h"
#include "base/status.h"
#include "base/text.h"
#include "client/cli/gate_report.h"
#include "client/cli/output.h"
#include "client/cli/report.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

// No byte drives a terminal, and no line of the candidate's passes for one of the report's.
void ExpectTame(const std::string& printed, size_t indent_of_report) {
  EXPECT_EQ(printed, Printable(printed));
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(printed, '\n'))) {
    const size_t start = line.find_first_not_of(' ');
    if (start == std::string::npos || start > indent_of_report) continue;
    EXPECT_NE(line.substr(start, kForged.size()), kForged) << printed;
  }
}

// With `text` in every place that a candidate, its compiler or its run can fill.
v1::Evaluation Filled(const std::string& text) {
  v1::Evaluation evaluation;
  evaluation.set_name("evaluations/1");
  evaluation.set_problem("problems/gelu");
  evaluation.set_candidate_label(text);
  evaluation.set_state(v1::SUCCEEDED);
  evaluation.set_worker("workers/" + text);
  v1::Outcome& outcome = *evaluation.mutable_outcome();
  outcome.set_verdict(v1::INCORRECT);
  outcome.set_reason("MISMATCH");
  outcome.set_message(text);
  outcome.set_output_log(text);
  v1::Diagnostic& diagnostic = *outcome.mutable_build()->add_diagnostics();
  diagnostic.set_severity(v1::Diagnostic::ERROR);
  diagnostic.set_file(text);
  diagnostic.set_line(3);
  diagnostic.set_message(text);
  v1::Finding& finding = *outcome.add_findings();
  finding.set_detector(text);
  finding.set_severity(v1::Finding::NOTICE);
  finding.set_evidence(text);
  v1::WorkloadResult& result = *outcome.add_workload_results();
  result.set_workload("n=4");
  result.mutable_verification()->set_failed_case(text);
  result.mutable_verification()->add_outputs()->set_tensor("c");
  result.mutable_verification()->mutable_first_mismatch()->set_tensor("c");
  result.mutable_measurement()->set_median_ns(5);
  result.mutable_measurement()->add_caveats(text);
  return evaluation;
}

TEST(NastyTextTest, InReports) {
  for (const std::string& text : NastyTexts()) {
    SCOPED_TRACE(PrintableLine(text));
    ExpectTame(EvaluationReport(Filled(text)), 2);
    v1::Evaluation failed = Filled(text);
    failed.set_state(v1::FAILED);
    failed.mutable_infrastructure_error()->set_message(text);
    v1::Evaluation waiting = Filled(text);
    waiting.set_state(v1::QUEUED);
    waiting.set_waiting_reason(text);
    for (const v1::Evaluation& evaluation : {Filled(text), failed, waiting}) {
      const std::string line = EvaluationLine(evaluation);
      ExpectTame(line, 0);
      EXPECT_EQ(line.find('\n'), std::string::npos);
    }
  }
}

TEST(NastyTextTest, InTables) {
  for (const std::string& text : NastyTexts()) {
    SCOPED_TRACE(PrintableLine(text));
    const std::string table = FormatTable({{"label", "time"}, {text, "1 us"}, {"b", text}}, {1});
    // Colours pass; what is not the table's own comes without.
    ExpectTame(absl::StrReplaceAll(table, {{"\x1b[31m", ""}}), 10'000);
    EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 3);
  }
  // Colours are the table's own.
  const std::string painted = Paint("PASSED", Color::kGreen, true);
  EXPECT_EQ(FormatTable({{"a", "b"}, {painted, "x"}}),
            absl::StrCat("a       b\n", painted, "  x\n"));
  EXPECT_EQ(FormatTable({{"\x1b[", "\x1b[3", "\x1b[31", "\x1b[2J"}}).find('\x1b'),
            std::string::npos);
}

TEST(NastyTextTest, InMarkdown) {
  for (const std::string& text : NastyTexts()) {
    SCOPED_TRACE(PrintableLine(text));
    v1::GateReport report;
    report.set_decision(v1::GateReport::REGRESSION);
    report.set_worker(text);
    report.add_evaluations(text);
    v1::GateReport::Workload& workload = *report.add_workloads();
    workload.set_workload(text);
    workload.set_explanation(text);
    workload.set_pair_count(3);
    ExpectTame(GateMarkdown(report), 10'000);
    // An explanation keeps its lines, in a block whose fence it cannot close.
    report.set_explanation(text);
    const std::string markdown = GateMarkdown(report);
    EXPECT_EQ(markdown, Printable(markdown));
    const size_t open = markdown.find("```");
    ASSERT_NE(open, std::string::npos);
    const std::string fence = markdown.substr(open, markdown.find_first_not_of('`', open) - open);
    const size_t content = open + fence.size();
    const size_t close = markdown.find(fence, content);
    ASSERT_NE(close, std::string::npos);
    EXPECT_EQ(markdown[close - 1], '\n');
    EXPECT_EQ(markdown.substr(close + fence.size(), 1), "\n");
  }
}

TEST(NastyTextTest, InJson) {
  for (const std::string& text : NastyTexts()) {
    SCOPED_TRACE(PrintableLine(text));
    const v1::Evaluation evaluation = Filled(text);
    const std::string json = ToJson(evaluation);
    EXPECT_EQ(json.find('\n'), std::string::npos);
    EXPECT_EQ(json.find("<script"), std::string::npos) << "in a page it would run";
    v1::Evaluation again;
    ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(json, &again).ok());
    EXPECT_EQ(again.SerializeAsString(), evaluation.SerializeAsString());
    const std::string error =
        ErrorJson(ErrorWithReason(absl::StatusCode::kInvalidArgument, "USAGE", text));
    EXPECT_EQ(error.find('\n'), std::string::npos);
    ExpectTame(error, 0);
  }
}

}  // namespace
}  // namespace assay
