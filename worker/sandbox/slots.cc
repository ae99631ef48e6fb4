#include "worker/sandbox/slots.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

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

absl::Status LocksUnavailable(int error_number, const std::string& what,
                              const std::string& advice) {
  return ErrorWithReason(absl::StatusCode::kFailedPrecondition, "SLOT_LOCKS_UNAVAILABLE",
                         absl::StrCat("cannot lock user ids for sandboxes: ", what, ": ",
                                      std::strerror(error_number), "; ", advice));
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
  const std::string make_writable = absl::StrCat(
      "make ", folder, " a folder that this user can write, in a container for example a tmpfs");
  if (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) {
    return LocksUnavailable(errno, absl::StrCat("make folder ", folder), make_writable);
  }
  for (int index = 0; index < kSlotSharesMax; ++index) {
    const std::string path = absl::StrCat(folder, "/slots-", index);
    UniqueFd lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!lock.valid()) {
      const int error = errno;
      const bool not_a_file = error == EISDIR || error == ELOOP;
      return LocksUnavailable(error, absl::StrCat("open ", path),
                              not_a_file
                                  ? absl::StrCat("remove ", path, ", which has to be a plain file")
                                  : make_writable);
    }
    if (flock(lock.get(), LOCK_EX | LOCK_NB) == 0) {
      return SlotClaim(std::move(lock), MakeShare(index));
    }
    if (errno != EWOULDBLOCK) {
      return LocksUnavailable(errno, absl::StrCat("flock ", path), make_writable);
    }
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
