// What a device told around the timed calls of one series of measurements, and which of the calls
// it disturbed.
//
// Not thread-safe.
#ifndef ASSAY_WORKER_MEASURE_DEVICE_EVIDENCE_H_
#define ASSAY_WORKER_MEASURE_DEVICE_EVIDENCE_H_

#include <cstdint>
#include <vector>

#include "worker/guest/guest_session.h"

namespace assay {

namespace v1 {
class DeviceEvidence;
}

class DeviceEvidenceLog {
 public:
  // Of the warm-up: clocks are held against those of its last calls.
  void NoteWarmUp(const CallTiming& timing);

  // Of a timed call, whether it counts or not.
  void Note(const CallTiming& timing, GuestCache cache);

  // Whether the device's clock was lowered or off by more than 3 %, or the host's share is in the
  // time.
  bool IsDisturbed(const CallTiming& timing) const;

  // `kept` calls count although they were disturbed.
  void Fill(int kept, v1::DeviceEvidence* evidence) const;

 private:
  std::vector<DeviceHealth> healths_;
  std::vector<double> walls_ns_;  // of warm calls
  std::vector<double> warmup_clocks_mhz_;
  double late_ns_max_ = 0;
  int timer_disagreements_ = 0;
};

// Whether `bits` say that the clock is lower than the work asks for. Idleness and limits that
// somebody set do not.
bool IsThrottled(uint64_t throttle_bits);

}  // namespace assay

#endif  // ASSAY_WORKER_MEASURE_DEVICE_EVIDENCE_H_
