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

// A device that runs device-tier candidates.
struct DeviceBackend {
  std::string driver;       // path or soname of its library
  bool is_emulated = true;  // it verifies and never times
  int arch = 80;            // of the emulated device; of a real one that of its preflight
  int ordinal = 0;          // of a real device
  // Of a real device: path of the emulated driver that sees candidates first. Empty: none does.
  std::string preflight_driver;
  std::string device_class;     // "emulated:sm_80", "cuda-nvidia-h100-pcie-sm_90"
  std::string model;            // of a real device, as its driver names it
  std::string instruction_set;  // of a real device: "sm_90 CUDA 13.0"
  std::vector<std::string> caveats;
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

  // Whether the last evaluation may have left a real device in a bad state: a sticky error, a
  // kernel that did not end, a runner that died. The canary tells.
  bool is_device_suspect() const { return is_device_suspect_; }

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
  bool is_device_suspect_ = false;
};

}  // namespace assay

#endif  // ASSAY_WORKER_AGENT_PIPELINE_H_
