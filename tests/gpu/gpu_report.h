// What a run of gpu_check found, and its table. Pure.
#ifndef ASSAY_TESTS_GPU_GPU_REPORT_H_
#define ASSAY_TESTS_GPU_GPU_REPORT_H_

#include <string>
#include <utility>
#include <vector>

#include "tests/gpu/cross_check.h"

namespace assay {

struct GpuReport {
  // Name and value, in order: device, driver, clocks, date.
  std::vector<std::pair<std::string, std::string>> machine;
  const v1::Calibration* calibration = nullptr;  // nullptr: not measured
  std::vector<CrossRow> rows;
  std::vector<TimeRow> times;
  std::vector<std::string> left_out;  // with the reason of each
};

// One more for every row that differs or failed.
int FailureCount(const GpuReport& report);

// Markdown: machine, ceilings, one row a candidate and workload, times, what was left out.
std::string RenderReport(const GpuReport& report);

}  // namespace assay

#endif  // ASSAY_TESTS_GPU_GPU_REPORT_H_
