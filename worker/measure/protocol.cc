#include "worker/measure/protocol.h"

#include "assay/v1/evaluation.pb.h"
#include "base/limits.h"

namespace assay {

MeasureProtocol QuickProtocol() {
  MeasureProtocol protocol;
  protocol.name = "cpu-quick-v1";
  protocol.warmup_min = absl::ZeroDuration();
  protocol.warmup_max = absl::Milliseconds(100);
  protocol.warm.samples_min = 30;
  protocol.warm.half_width_max = 0.02;
  protocol.warm.time_limit = absl::Milliseconds(300);
  protocol.warm.samples_max = static_cast<int>(limits::kSamplesMax);
  protocol.cold = protocol.warm;
  protocol.cold.samples_min = 10;
  protocol.cold.half_width_max = 0.05;
  protocol.cold.time_limit = absl::Milliseconds(50);
  protocol.cold.hard_time_limit = absl::Seconds(5);
  protocol.cold.samples_floor = 3;
  return protocol;
}

MeasureProtocol RankedProtocol() {
  MeasureProtocol protocol;
  protocol.name = "cpu-v1";
  protocol.runner_count = 3;
  protocol.warmup_min = absl::Milliseconds(500);
  protocol.warmup_max = absl::Seconds(2);
  protocol.warmup_agreement = 0.005;
  protocol.warm.samples_min = 90;
  protocol.warm.half_width_max = 0.005;
  protocol.warm.time_limit = absl::Seconds(1);
  protocol.warm.samples_max = static_cast<int>(limits::kSamplesMax);
  protocol.warm.samples_floor = 9;
  protocol.cold = protocol.warm;
  protocol.cold.samples_min = 30;
  protocol.cold.half_width_max = 0.02;
  protocol.cold.time_limit = absl::Milliseconds(300);
  protocol.cold.hard_time_limit = absl::Seconds(10);
  protocol.cold.samples_floor = 5;
  return protocol;
}

MeasureProtocol PairProtocol() {
  MeasureProtocol protocol = QuickProtocol();
  protocol.name = "cpu-pair-v1";
  protocol.warmup_min = absl::Milliseconds(50);
  protocol.warmup_max = absl::Milliseconds(300);
  protocol.warm.half_width_max = 0.005;
  // Pairs compare warm medians; a few cold samples keep the report complete.
  protocol.cold.samples_min = 5;
  protocol.cold.time_limit = absl::ZeroDuration();
  return protocol;
}

namespace {

// Clocks of a device rise within about a second of work.
MeasureProtocol DeviceQuickProtocol() {
  MeasureProtocol protocol = QuickProtocol();
  protocol.name = "gpu-quick-v1";
  protocol.on_device = true;
  protocol.warmup_min = absl::Milliseconds(200);
  protocol.warmup_max = absl::Seconds(1);
  protocol.warmup_window = 10;
  protocol.warm.time_limit = absl::Milliseconds(500);
  protocol.cold.time_limit = absl::Milliseconds(200);
  return protocol;
}

MeasureProtocol DeviceRankedProtocol() {
  MeasureProtocol protocol = RankedProtocol();
  protocol.name = "gpu-v1";
  protocol.on_device = true;
  protocol.warmup_min = absl::Seconds(1);
  protocol.warmup_max = absl::Seconds(5);
  protocol.warmup_window = 10;
  protocol.warm.samples_min = 30;
  protocol.warm.time_limit = absl::Seconds(3);
  protocol.cold.half_width_max = 0.005;
  protocol.cold.time_limit = absl::Seconds(2);
  return protocol;
}

MeasureProtocol DevicePairProtocol() {
  MeasureProtocol protocol = DeviceQuickProtocol();
  protocol.name = "gpu-pair-v1";
  protocol.warmup_min = absl::Milliseconds(500);
  protocol.warmup_max = absl::Milliseconds(1500);
  protocol.warm.half_width_max = 0.005;
  protocol.cold.samples_min = 5;
  protocol.cold.time_limit = absl::ZeroDuration();
  return protocol;
}

}  // namespace

MeasureProtocol DeviceProtocolForLevel(int level) {
  switch (level) {
    case v1::RANKED:
      return DeviceRankedProtocol();
    case v1::PAIRED:
      return DevicePairProtocol();
    default:
      return DeviceQuickProtocol();
  }
}

MeasureProtocol ProtocolForLevel(int level) {
  switch (level) {
    case v1::RANKED:
      return RankedProtocol();
    case v1::PAIRED:
      return PairProtocol();
    default:
      return QuickProtocol();
  }
}

}  // namespace assay
