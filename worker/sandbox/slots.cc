#include "worker/sandbox/slots.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "worker/sandbox/sandbox.h"

namespace assay {
namespace {

constexpr char kLockFolder[] = "/run/assay";

// Slots below kSlotsPerRunner belong to no runner: builders have the first, probes the next.
SlotShare MakeShare(int index) {
  static_assert(2 * kSlotSharesMax <= kSlotsPerRunner);
  static_assert((kSlotSharesMax * kRunnersPerShare + 1) * kSlotsPerRunner <= kSandboxSlotsMax);
  return {index, kSlotSharesMax + index, index * kRunnersPerShare + 1,
          (index + 1) * kRunnersPerShare};
}

absl::StatusOr<SlotShare> ClaimForProcess() {
  if (geteuid() != 0) return MakeShare(0);
  absl::StatusOr<SlotClaim> claim = SlotClaim::Take(kLockFolder);
  if (!claim.ok()) return claim.status();
  // The lock goes with the process.
  static const SlotClaim held = *std::move(claim);
  return held.share();
}

}  // namespace

absl::StatusOr<SlotClaim> SlotClaim::Take(const std::string& folder) {
  if (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) {
    return ErrnoError(errno, absl::StrCat("making ", folder, " for locks on user ids"));
  }
  for (int index = 0; index < kSlotSharesMax; ++index) {
    const std::string path = absl::StrCat(folder, "/slots-", index);
    UniqueFd lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!lock.valid()) return ErrnoError(errno, absl::StrCat("open ", path));
    if (flock(lock.get(), LOCK_EX | LOCK_NB) == 0) {
      return SlotClaim(std::move(lock), MakeShare(index));
    }
    if (errno != EWOULDBLOCK) return ErrnoError(errno, absl::StrCat("flock ", path));
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "all ", kSlotSharesMax, " shares of this machine's sandbox user ids are held (locks in ",
      folder, "); stop a worker first"));
}

const absl::StatusOr<SlotShare>& ProcessSlots() {
  static const absl::StatusOr<SlotShare> share = ClaimForProcess();
  return share;
}

}  // namespace assay
