// Which of the machine's slots belong to this process. A slot is a user id, and the kernel counts
// processes by user: two workers on one machine must not use the same.
#ifndef ASSAY_WORKER_SANDBOX_SLOTS_H_
#define ASSAY_WORKER_SANDBOX_SLOTS_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/file.h"

namespace assay {

// Runner n has the slots from n times this on, one for each of its guests that may be alive.
inline constexpr int kSlotsPerRunner = 24;
// Shares of one machine, and so processes (workers, assay doctor) that may hold one at a time.
inline constexpr int kSlotSharesMax = 8;
inline constexpr int kRunnersPerShare = 5;

struct SlotShare {
  int builder = 0;  // of compilations
  int probe = 0;    // of ProbeWalls
  int runner_first = 0;
  int runner_last = 0;
};

// A share that is held as long as this lives, and no longer than the process.
class SlotClaim {
 public:
  // Takes the first share that nobody holds, by a lock on a file in `folder`, which is made if need
  // be. RESOURCE_EXHAUSTED when all are held; SLOT_LOCKS_UNAVAILABLE when they cannot be locked.
  // Does not wait.
  static absl::StatusOr<SlotClaim> Take(const std::string& folder);
  const SlotShare& share() const { return share_; }

 private:
  SlotClaim(UniqueFd lock, const SlotShare& share) : lock_(std::move(lock)), share_(share) {}

  UniqueFd lock_;
  SlotShare share_;
};

// The share of this process: claimed at the first call, held until the process ends. Without root
// no user id is taken, and every process has the first share. Thread-safe.
const absl::StatusOr<SlotShare>& ProcessSlots();

}  // namespace assay

#endif  // ASSAY_WORKER_SANDBOX_SLOTS_H_
