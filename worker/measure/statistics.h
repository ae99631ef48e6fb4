// Order statistics of timing samples. Pure.
#ifndef ASSAY_WORKER_MEASURE_STATISTICS_H_
#define ASSAY_WORKER_MEASURE_STATISTICS_H_

#include <span>
#include <vector>

namespace assay {

// As assay.v1.Summary; nanoseconds.
struct SampleSummary {
  int count = 0;
  double min = 0;
  double q1 = 0;
  double median = 0;
  double q3 = 0;
  double p95 = 0;
  double mad = 0;
  double lag1_autocorrelation = 0;
  double half_width_ratio = 0;
};

// Quantile of sorted values by linear interpolation between order statistics (type 7 of Hyndman and
// Fan 1996). 0 for none.
double SortedQuantile(std::span<const double> sorted, double probability);

double Median(std::vector<double> values);

// Median of |x - median|, not scaled to a standard deviation.
double MedianAbsoluteDeviation(std::span<const double> values);

// r1 = sum (x_i - m)(x_{i+1} - m) / sum (x_i - m)^2 with the mean m. 0 for fewer than three values
// or no variance.
double Lag1Autocorrelation(std::span<const double> values);

// Half of the distribution-free 95 % confidence interval of the median, over the median. The
// interval lies between the order statistics of ranks n/2 -+ 0.98 sqrt(n), rounded outwards (normal
// approximation of the binomial; Conover 1999, 3.2). Infinite for fewer than six values, where no
// such interval exists.
double MedianHalfWidthRatio(std::span<const double> values);

// One summary of the samples of several runners: order statistics over all of them; the
// autocorrelation is the mean of the runners' own, weighted by their counts, because the step from
// one runner to the next is no autocorrelation.
SampleSummary Summarize(const std::vector<std::vector<double>>& runners);

}  // namespace assay

#endif  // ASSAY_WORKER_MEASURE_STATISTICS_H_
