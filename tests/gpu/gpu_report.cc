#include "tests/gpu/gpu_report.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "assay/v1/fleet.pb.h"

namespace assay {
namespace {

using Result = CrossRow::Result;

bool IsBad(const CrossRow& row) {
  return row.result == Result::kDiffers || row.result == Result::kFailed;
}

// Inside of a table.
std::string Cell(std::string_view text) {
  return absl::StrReplaceAll(absl::string_view(text.data(), text.size()),
                             {{"|", "\\|"}, {"\n", " "}, {"\r", ""}});
}

std::string Scaled(double rate, std::string_view unit) {
  constexpr struct {
    double from;
    const char* prefix;
  } kPrefixes[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}};
  for (const auto& [from, prefix] : kPrefixes) {
    if (rate >= from) return absl::StrFormat("%.4g %s%s", rate / from, prefix, unit);
  }
  return absl::StrFormat("%.4g %s", rate, unit);
}

std::string Duration(double ns) {
  return ns >= 1e6 ? absl::StrFormat("%.4g ms", ns / 1e6) : absl::StrFormat("%.4g us", ns / 1e3);
}

std::string RenderCeilings(const v1::Calibration& calibration) {
  std::string text = absl::StrCat("## Ceilings\n\nMeasured by ", calibration.method(), ".\n\n");
  absl::StrAppend(&text, "| kernel | level | footprint | rate | spread | configuration |\n",
                  "|---|---|---|---|---|---|\n");
  for (const v1::CeilingPoint& point : calibration.points()) {
    const bool is_stream = point.footprint_bytes() > 0;
    absl::StrAppend(
        &text, "| ", point.kernel(), " | ", point.level(), " | ",
        is_stream
            ? absl::StrFormat("%.1f MiB", static_cast<double>(point.footprint_bytes()) / (1 << 20))
            : "",
        " | ", Scaled(point.rate_per_second(), is_stream ? "B/s" : "op/s"), " | ",
        absl::StrFormat("%.2f %%", 100 * point.spread_ratio()), " | ", Cell(point.configuration()),
        " |\n");
  }
  absl::StrAppend(&text, "\nA launch of an empty kernel: ", Duration(calibration.launch_ns()),
                  " between two events, ", Duration(calibration.launch_interval_ns()),
                  " each back to back.\n\n");
  return text;
}

std::string ResultText(const CrossRow& row) {
  switch (row.result) {
    case Result::kSameBits:
      return "same bits";
    case Result::kWithinTolerance:
      return "within tolerance";
    case Result::kDiffers:
      return "DIFFERS";
    case Result::kFailed:
      return "FAILED";
  }
  return "";
}

std::string RenderRows(const std::vector<CrossRow>& rows) {
  std::string text =
      "## Device against emulated device\n\n"
      "| problem | candidate | workload | outputs | L2 error | element error | why bits may differ "
      "|\n|---|---|---|---|---|---|---|\n";
  for (const CrossRow& row : rows) {
    const bool same = row.result == Result::kSameBits || row.result == Result::kFailed;
    absl::StrAppend(&text, "| ", row.problem, " | ", row.candidate, " | ", row.workload, " | ",
                    ResultText(row), row.message.empty() ? "" : ": ", Cell(row.message), " | ",
                    same ? "" : absl::StrFormat("%.2g", row.relative_l2), " | ",
                    same ? "" : absl::StrFormat("%.2g", row.element_error), " | ",
                    Cell(row.why_bits_may_differ), " |\n");
  }
  return text + "\n";
}

std::string RenderTimes(const std::vector<TimeRow>& rows) {
  std::string text =
      "## Times\n\nBy events, caches warm, inputs not changed between runs: a look at the device, "
      "not the protocol by which candidates are judged.\n\n"
      "| problem | candidate | workload | median | spread | of the ceiling | ceiling |\n"
      "|---|---|---|---|---|---|---|\n";
  for (const TimeRow& row : rows) {
    const bool known = row.ceiling_ns > 0 && row.median_ns > 0;
    absl::StrAppend(&text, "| ", row.problem, " | ", row.candidate, " | ", row.workload, " | ",
                    Duration(row.median_ns), " | ",
                    absl::StrFormat("%.2f %%", 100 * row.spread_ratio), " | ",
                    known ? absl::StrFormat("%.1f %%", 100 * row.ceiling_ns / row.median_ns) : "",
                    " | ", Cell(row.ceiling_basis), " |\n");
  }
  return text + "\n";
}

}  // namespace

int FailureCount(const GpuReport& report) {
  return static_cast<int>(std::count_if(report.rows.begin(), report.rows.end(), IsBad));
}

std::string RenderReport(const GpuReport& report) {
  std::map<std::string, int> counts;
  for (const CrossRow& row : report.rows) ++counts[ResultText(row)];
  std::string text = "# gpu_check\n\n| | |\n|---|---|\n";
  for (const auto& [name, value] : report.machine) {
    absl::StrAppend(&text, "| ", Cell(name), " | ", Cell(value), " |\n");
  }
  absl::StrAppend(&text, "| outputs compared | ", report.rows.size());
  for (const auto& [name, count] : counts) absl::StrAppend(&text, ", ", count, " ", name);
  absl::StrAppend(&text, " |\n\n");
  if (report.calibration != nullptr) text += RenderCeilings(*report.calibration);
  if (!report.rows.empty()) text += RenderRows(report.rows);
  if (!report.times.empty()) text += RenderTimes(report.times);
  text += "## Left out\n\n";
  for (const std::string& line : report.left_out) absl::StrAppend(&text, "* ", Cell(line), "\n");
  if (report.left_out.empty()) text += "Nothing.\n";
  return text;
}

}  // namespace assay
