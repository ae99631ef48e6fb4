#include "worker/agent/aggregate.h"

#include <algorithm>

#include "assay/internal/v1/dispatch.pb.h"
#include "assay/v1/evaluation.pb.h"
#include "assay/v1/problem.pb.h"
#include "base/digest.h"
#include "worker/measure/statistics.h"

namespace assay {
namespace {

constexpr double kDiscardRatioMax = 0.2;
constexpr double kSectorBytes = 32;

// What speaks against the times of a device.
void AddDeviceCaveats(const std::vector<v1::RunnerSamples>& runners, v1::Measurement* measurement) {
  bool is_device = false;
  bool clocks_known = true;
  bool timers_agree = true;
  for (const v1::RunnerSamples& runner : runners) {
    if (!runner.has_device()) continue;
    is_device = true;
    clocks_known = clocks_known && runner.device().sm_clock_mhz_min() > 0;
    timers_agree = timers_agree && runner.device().timer_disagreement_count() == 0;
  }
  if (is_device && !clocks_known) measurement->add_caveats("CLOCKS_UNKNOWN");
  if (is_device && !timers_agree) measurement->add_caveats("TIMERS_DISAGREE");
}

void FillSummary(const SampleSummary& from, v1::Summary* to) {
  to->set_sample_count(from.count);
  to->set_min_ns(from.min);
  to->set_q1_ns(from.q1);
  to->set_median_ns(from.median);
  to->set_q3_ns(from.q3);
  to->set_p95_ns(from.p95);
  to->set_mad_ns(from.mad);
  to->set_lag1_autocorrelation(from.lag1_autocorrelation);
  to->set_half_width_ratio(from.half_width_ratio);
}

}  // namespace

void AggregateRunners(const std::vector<v1::RunnerSamples>& runners, const std::string& protocol,
                      const std::vector<std::string>& caveats, v1::Measurement* measurement) {
  std::vector<std::vector<double>> warm;
  std::vector<std::vector<double>> cold;
  std::vector<double> medians;
  std::vector<double> handshakes;
  int disturbed = 0;  // calls of a device that count nevertheless
  for (const v1::RunnerSamples& runner : runners) {
    warm.emplace_back(runner.warm_ns().begin(), runner.warm_ns().end());
    cold.emplace_back(runner.cold_ns().begin(), runner.cold_ns().end());
    medians.push_back(Median(warm.back()));
    handshakes.push_back(runner.handshake_ns());
    disturbed += runner.device().disturbed_count();
    measurement->set_context_switches(measurement->context_switches() + runner.context_switches());
    measurement->set_migrations(measurement->migrations() + runner.migrations());
    measurement->set_discarded_count(measurement->discarded_count() + runner.discarded_count());
    // The weakest: a limit in one runner is a limit of the whole.
    measurement->set_stop_reason(std::max(measurement->stop_reason(), runner.stop_reason()));
    *measurement->add_runners() = runner;
  }
  FillSummary(Summarize(warm), measurement->mutable_warm());
  FillSummary(Summarize(cold), measurement->mutable_cold());
  const double median = Median(medians);
  measurement->set_median_ns(median);
  measurement->set_sample_count(measurement->warm().sample_count());
  measurement->set_handshake_ns(Median(handshakes));
  measurement->set_runner_count(static_cast<int32_t>(runners.size()));
  const auto [low, high] = std::minmax_element(medians.begin(), medians.end());
  if (median > 0) measurement->set_runner_spread_ratio((*high - *low) / median);
  measurement->set_protocol(protocol);
  for (const std::string& caveat : caveats) measurement->add_caveats(caveat);
  const double tries = measurement->warm().sample_count() + measurement->cold().sample_count() +
                       measurement->discarded_count();
  AddDeviceCaveats(runners, measurement);
  if (measurement->context_switches() + measurement->migrations() + disturbed > 0 ||
      measurement->discarded_count() > kDiscardRatioMax * tries) {
    measurement->add_caveats("NOISY_ENVIRONMENT");
  }
}

void SetIntensities(const WorkCost& cost, v1::ObservedWork* observed) {
  const int64_t flops = observed->f16_flops() + observed->f32_flops() + observed->f64_flops();
  const int64_t own = cost.unit == v1::WorkModel::OP_INT8 ? observed->integer_operations() : flops;
  const double bytes = kSectorBytes * static_cast<double>(observed->global_sectors());
  if (bytes > 0) {
    observed->set_arithmetic_intensity(static_cast<double>(own + observed->tensor_flops()) / bytes);
  }
  observed->set_declared_intensity(cost.intensity());
}

std::string ResultId(const internal::v1::WorkSpec& work, const ValueMap& configuration,
                     const v1::Outcome& outcome, const std::string& protocol) {
  DigestBuilder digest;
  digest.Add("result-v1");
  digest.Add(work.problem().digest()).Add(int64_t{work.problem().version()});
  digest.Add(work.candidate().digest()).Add(work.baseline_candidate().digest());
  for (const auto& [name, value] : configuration) digest.Add(name).Add(value);
  digest.Add(outcome.build().artifact_digest()).Add(outcome.build().compiler());
  for (const std::string& option : outcome.build().options()) digest.Add(option);
  for (const v1::WorkloadResult& result : outcome.workload_results()) {
    digest.Add(result.workload());
  }
  digest.Add(protocol);
  digest.Add(outcome.environment().harness_version());
  digest.Add(outcome.environment().instruction_set());
  if (!outcome.contract().empty()) digest.Add("contract").Add(outcome.contract());
  return digest.Finish();
}

std::string EnvironmentId(const v1::Environment& environment, const MachineFacts& machine) {
  DigestBuilder digest;
  digest.Add("environment-v1");
  digest.Add(environment.cpu_model()).Add(machine.microcode).Add(environment.kernel());
  digest.Add(environment.instruction_set());
  digest.Add(static_cast<int64_t>(machine.cores.size()));
  for (const std::string& caveat : machine.caveats) digest.Add(caveat);
  for (const std::string& wall : environment.walls()) digest.Add(wall);
  if (!environment.device_model().empty()) digest.Add(environment.device_model());
  return digest.Finish();
}

}  // namespace assay
