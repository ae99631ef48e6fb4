// The guest's own seccomp filters. Each narrows the one before; what is not allowed raises SIGSYS,
// so that the call can be named. Single-threaded use.
#ifndef ASSAY_WORKER_GUEST_GUEST_FILTER_H_
#define ASSAY_WORKER_GUEST_GUEST_FILTER_H_

namespace assay {

enum class GuestFilterStage {
  kLoading,  // static constructors and the loader: files may be read, code mapped
  kCalling,  // no files, no new code
};

// 0 or errno.
int InstallGuestFilter(GuestFilterStage stage);

}  // namespace assay

#endif  // ASSAY_WORKER_GUEST_GUEST_FILTER_H_
