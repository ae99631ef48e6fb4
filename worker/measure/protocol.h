// The measurement protocols by name. README.md in this folder describes and justifies them.
#ifndef ASSAY_WORKER_MEASURE_PROTOCOL_H_
#define ASSAY_WORKER_MEASURE_PROTOCOL_H_

#include <string>

#include "absl/time/time.h"
#include "worker/measure/stopping/stopping_rule.h"

namespace assay {

struct MeasureProtocol {
  std::string name;
  int runner_count = 1;  // fresh runners that the worker starts

  // Warm-up: at least `warmup_min`; then until the medians of the last three windows of
  // `warmup_window` calls agree within `warmup_agreement`, or until `warmup_max`. The least is of
  // the calls alone on a device, and otherwise of the runner's clock, as the most always is.
  absl::Duration warmup_min;
  absl::Duration warmup_max;
  int warmup_window = 5;
  double warmup_agreement = 0.02;

  StoppingParameters warm;
  StoppingParameters cold;

  // The candidate is device code: it has no process whose time could be accounted for, the floor is
  // the launch of an empty kernel, and what disturbs a call is the device's clock.
  bool on_device = false;
};

// "cpu-quick-v1".
MeasureProtocol QuickProtocol();
// "cpu-v1".
MeasureProtocol RankedProtocol();
// "cpu-pair-v1": one runner of a pair.
MeasureProtocol PairProtocol();

// By assay.v1.Level, for host-tier candidates; and "gpu-quick-v1", "gpu-v1" and "gpu-pair-v1", for
// candidates on a real device.
MeasureProtocol ProtocolForLevel(int level);
MeasureProtocol DeviceProtocolForLevel(int level);

}  // namespace assay

#endif  // ASSAY_WORKER_MEASURE_PROTOCOL_H_
