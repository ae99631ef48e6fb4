#include "worker/measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace assay {
namespace {

constexpr size_t kIntervalSamplesMin = 6;  // 2 * 0.5^6 < 0.05

std::vector<double> Sorted(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

}  // namespace

double SortedQuantile(std::span<const double> sorted, double probability) {
  if (sorted.empty()) return 0;
  const double position = probability * static_cast<double>(sorted.size() - 1);
  const size_t below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = position - static_cast<double>(below);
  return sorted[below] + part * (sorted[above] - sorted[below]);
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return SortedQuantile(values, 0.5);
}

double MedianAbsoluteDeviation(std::span<const double> values) {
  std::vector<double> deviations(values.begin(), values.end());
  const double median = Median(deviations);
  for (double& value : deviations) value = std::fabs(value - median);
  return Median(std::move(deviations));
}

double Lag1Autocorrelation(std::span<const double> values) {
  if (values.size() < 3) return 0;
  const double mean =
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  double covariance = 0;
  double variance = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    variance += (values[i] - mean) * (values[i] - mean);
    if (i + 1 < values.size()) covariance += (values[i] - mean) * (values[i + 1] - mean);
  }
  return variance > 0 ? covariance / variance : 0;
}

double MedianHalfWidthRatio(std::span<const double> values) {
  const size_t n = values.size();
  if (n < kIntervalSamplesMin) return std::numeric_limits<double>::infinity();
  const std::vector<double> sorted = Sorted(values);
  const double count = static_cast<double>(n);
  const double reach = 0.98 * std::sqrt(count);
  // Ranks from 1.
  const double low = std::max(1.0, std::floor(count / 2 - reach));
  const double high = std::min(count, std::ceil(count / 2 + 1 + reach));
  const double median = SortedQuantile(sorted, 0.5);
  if (median <= 0) return std::numeric_limits<double>::infinity();
  return (sorted[static_cast<size_t>(high) - 1] - sorted[static_cast<size_t>(low) - 1]) / 2 /
         median;
}

SampleSummary Summarize(const std::vector<std::vector<double>>& runners) {
  std::vector<double> all;
  double weighted = 0;
  for (const std::vector<double>& samples : runners) {
    all.insert(all.end(), samples.begin(), samples.end());
    weighted += Lag1Autocorrelation(samples) * static_cast<double>(samples.size());
  }
  SampleSummary summary;
  summary.count = static_cast<int>(all.size());
  if (all.empty()) return summary;
  const std::vector<double> sorted = Sorted(all);
  summary.min = sorted.front();
  summary.q1 = SortedQuantile(sorted, 0.25);
  summary.median = SortedQuantile(sorted, 0.5);
  summary.q3 = SortedQuantile(sorted, 0.75);
  summary.p95 = SortedQuantile(sorted, 0.95);
  summary.mad = MedianAbsoluteDeviation(sorted);
  summary.lag1_autocorrelation = weighted / static_cast<double>(all.size());
  summary.half_width_ratio = MedianHalfWidthRatio(all);
  return summary;
}

}  // namespace assay
