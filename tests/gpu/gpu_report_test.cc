#include "tests/gpu/gpu_report.h"

#include "assay/v1/fleet.pb.h"
#include "gmock/gmock.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Result = CrossRow::Result;

CrossRow Row(const char* candidate, Result result) {
  CrossRow row;
  row.problem = "gelu";
  row.candidate = candidate;
  row.workload = "prime";
  row.result = result;
  return row;
}

TEST(GpuReportTest, HasOneLineForEverything) {
  v1::Calibration calibration;
  calibration.set_method("method-v1");
  calibration.set_launch_ns(2150);
  calibration.set_launch_interval_ns(1520);
  v1::CeilingPoint& copy = *calibration.add_points();
  copy.set_kernel("copy");
  copy.set_level("DRAM");
  copy.set_footprint_bytes(320 << 20);
  copy.set_rate_per_second(1.5e12);
  copy.set_spread_ratio(0.004);
  copy.set_configuration("16 bytes an access, grid 432, block 256");
  v1::CeilingPoint& fma = *calibration.add_points();
  fma.set_kernel("fma_f32");
  fma.set_rate_per_second(19.5e9);

  GpuReport report;
  report.machine = {{"device", "Model | X"}};
  report.calibration = &calibration;
  report.rows = {Row("plain", Result::kSameBits), Row("fast", Result::kWithinTolerance),
                 Row("odd", Result::kDiffers), Row("broken", Result::kFailed)};
  report.rows[1].why_bits_may_differ = "tanh.approx.f32";
  report.rows[1].relative_l2 = 1.5e-7;
  report.rows[2].message = "y differs";
  report.rows[3].message = "two\nlines";
  TimeRow time;
  time.problem = "gelu";
  time.candidate = "plain";
  time.workload = "dram";
  time.median_ns = 100e3;
  time.ceiling_ns = 80e3;
  time.ceiling_basis = "copy DRAM whole device 1500.0 GB/s";
  report.times = {time};
  report.left_out = {"gelu/plain dram: no time left"};

  const std::string text = RenderReport(report);
  for (const char* const line :
       {"| device | Model \\| X |\n",
        "| outputs compared | 4, 1 DIFFERS, 1 FAILED, 1 same bits, 1 within tolerance |\n",
        "Measured by method-v1.\n",
        "| copy | DRAM | 320.0 MiB | 1.5 TB/s | 0.40 % | 16 bytes an access, grid 432, block 256 "
        "|\n",
        "| fma_f32 |  |  | 19.5 Gop/s | 0.00 % |  |\n",
        "A launch of an empty kernel: 2.15 us between two events, 1.52 us each back to back.\n",
        "| gelu | plain | prime | same bits |  |  |  |\n",
        "| gelu | fast | prime | within tolerance | 1.5e-07 | 0 | tanh.approx.f32 |\n",
        "| gelu | odd | prime | DIFFERS: y differs | 0 | 0 |  |\n",
        "| gelu | broken | prime | FAILED: two lines |  |  |  |\n",
        "| gelu | plain | dram | 100 us | 0.00 % | 80.0 % | copy DRAM whole device 1500.0 GB/s |\n",
        "* gelu/plain dram: no time left\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_EQ(FailureCount(report), 2);
}

TEST(GpuReportTest, WhatWasNotMeasuredHasNoTable) {
  GpuReport report;
  report.rows = {Row("plain", Result::kSameBits)};
  const std::string text = RenderReport(report);
  EXPECT_THAT(text, Not(HasSubstr("## Ceilings")));
  EXPECT_THAT(text, Not(HasSubstr("## Times")));
  EXPECT_THAT(text, HasSubstr("## Left out\n\nNothing.\n"));
  EXPECT_EQ(FailureCount(report), 0);
}

}  // namespace
}  // namespace assay
