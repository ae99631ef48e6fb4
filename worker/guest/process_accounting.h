// What the kernel says about another process, read often and cheaply. Not thread-safe.
#ifndef ASSAY_WORKER_GUEST_PROCESS_ACCOUNTING_H_
#define ASSAY_WORKER_GUEST_PROCESS_ACCOUNTING_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/file.h"

namespace assay {

class ProcessAccounting {
 public:
  struct Sample {
    int64_t timeslices = 0;  // how often it was put on a core
    int64_t waited_ns = 0;   // ready to run, but without a core
    int64_t cpu_ns = 0;      // time on cores; exact while it sleeps, else up to a tick old
    int core = -1;           // the one it ran on last
  };

  // Keeps /proc/<pid>/{stat,schedstat} open.
  static absl::StatusOr<ProcessAccounting> Open(int pid);
  // Of the calling thread.
  static absl::StatusOr<ProcessAccounting> OpenThisThread();
  // Zeros once the process is gone. A few microseconds.
  Sample Read() const;
  bool Asleep() const;
  // Whether the kernel counts time slices and waiting.
  bool has_schedstat() const { return schedstat_.valid(); }

 private:
  static absl::StatusOr<ProcessAccounting> OpenFolder(const std::string& folder);

  UniqueFd stat_;
  UniqueFd schedstat_;  // not in every kernel
};

// A deadline that does not count the time in which a process wanted a core and had none, since a
// busy machine must not make a candidate slow; but at most twice as far from `start_ns`.
int64_t DeadlineWithoutWaits(int64_t start_ns, int64_t deadline_ns, int64_t waited_ns);

}  // namespace assay

#endif  // ASSAY_WORKER_GUEST_PROCESS_ACCOUNTING_H_
