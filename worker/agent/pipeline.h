// From a lease's work to an outcome: builds, runners, measurement, ceilings, detectors, verdict.
#ifndef ASSAY_WORKER_AGENT_PIPELINE_H_
#define ASSAY_WORKER_AGENT_PIPELINE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "worker/agent/runner_source.h"
#include "worker/builder/builder.h"
#include "worker/detect/detector.h"
#include "worker/measure/machine.h"

namespace assay {

namespace v1 {
class Calibration;
class Outcome;
class Timeline;
}  // namespace v1
namespace internal::v1 {
class WorkSpec;
}

// What an evaluation tells and asks while it runs.
struct PipelineHooks {
  std::function<void(std::string_view stage)> set_stage;  // "BUILD", "VERIFY", "MEASURE"
  std::function<bool()> keep_going;                       // false: stop, nobody wants the outcome
};

// A device that runs device-tier candidates: the emulated one, which verifies and never times.
struct DeviceBackend {
  std::string driver;  // path of its library
  int arch = 80;
  std::string device_class;  // "emulated:sm_80"
  Builder* ptx = nullptr;
  Builder* cuda = nullptr;  // nullptr: `cuda_missing` says why
  absl::Status cuda_missing;
};

struct PipelineOptions {
  Builder* builder = nullptr;  // of references, baselines and host-tier candidates
  // Set: this worker judges device-tier candidates instead of host-tier ones.
  std::optional<DeviceBackend> device;
  RunnerSource* runners = nullptr;
  Clock* clock = nullptr;
  MachineFacts machine;
  CorePlacement cores;
  std::string device_name;  // "workers/{worker}/devices/{device}"
  std::string harness_version;
  std::function<uint64_t()> nonce;  // unpredictable
  std::shared_ptr<const v1::Calibration> calibration;
  // Measures the ceilings again before anybody is called implausible. May be empty.
  std::function<absl::Status(v1::Calibration*)> recalibrate;
};

// Judges one evaluation at a time; not thread-safe.
class Pipeline {
 public:
  explicit Pipeline(PipelineOptions options);
  ~Pipeline();

  // Blocks for seconds to minutes. A bad status is the infrastructure's (CANCELLED when keep_going
  // said so); otherwise `outcome` has a verdict.
  absl::Status Judge(const internal::v1::WorkSpec& work, const PipelineHooks& hooks,
                     v1::Outcome* outcome, v1::Timeline* timeline);

 private:
  friend class Judgement;

  // A baseline's measured median; it serves other candidates for some minutes.
  struct CachedBaseline {
    double median_ns = 0;
    absl::Duration until;
  };

  PipelineOptions options_;
  const std::vector<std::unique_ptr<Detector>> detectors_;
  std::map<std::string, CachedBaseline> baselines_;
};

}  // namespace assay

#endif  // ASSAY_WORKER_AGENT_PIPELINE_H_
