#include "worker/guest/guest_filter.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace assay {
namespace {

constexpr uint32_t kArchitecture =
#if defined(__x86_64__)
    AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
    AUDIT_ARCH_AARCH64;
#else
#error "unknown architecture"
#endif

constexpr uint32_t kErrno = SECCOMP_RET_ERRNO;
constexpr uint32_t kSignalledExitBit = 128;

// Memory, output, waiting, and questions about the process itself.
constexpr uint32_t kAlwaysAllowed[] = {
    SYS_brk,
    SYS_clock_gettime,
    SYS_close,
    SYS_fstat,
    SYS_futex,
    SYS_getcpu,
    SYS_getpid,
    SYS_getrandom,
    SYS_gettid,
    SYS_gettimeofday,
    SYS_madvise,
    SYS_mremap,
    SYS_munmap,
    SYS_newfstatat,
    SYS_restart_syscall,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sched_getaffinity,
    SYS_sched_yield,
    SYS_sysinfo,
    SYS_uname,
    SYS_write,
    SYS_writev,
};

constexpr uint32_t kLoadingAllowed[] = {
    SYS_read,      SYS_pread64,    SYS_lseek,   SYS_fcntl,   SYS_readlinkat,
    SYS_faccessat, SYS_getdents64, SYS_getuid,  SYS_geteuid, SYS_getgid,
    SYS_getegid,   SYS_prctl,      SYS_seccomp, SYS_mmap,    SYS_mprotect,
#if defined(__x86_64__)
    SYS_access,    SYS_readlink,   SYS_stat,
#endif
};

// Refused with an error instead of a signal: libraries ask, and go on without.
constexpr uint32_t kRefusedQuietly[] = {SYS_ioctl, SYS_mbind, SYS_get_mempolicy, SYS_set_mempolicy};

// A program of classic BPF, built forwards. Every rule is self-contained: it returns, or leaves the
// accumulator holding the system call number.
class Program {
 public:
  Program() {
    Load(offsetof(seccomp_data, arch));
    Add(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0);
    Return(SECCOMP_RET_KILL_PROCESS);
    Load(offsetof(seccomp_data, nr));
  }

  void Always(uint32_t number, uint32_t action) {
    Add(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
    Return(action);
  }

  // Allows the call when none of `bits` is set in the low half of argument `index`, else traps.
  void WithoutBits(uint32_t number, int index, uint32_t bits) {
    Add(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 4);
    Load(Argument(index));
    Add(BPF_JMP | BPF_JSET | BPF_K, bits, 1, 0);
    Return(SECCOMP_RET_ALLOW);
    Return(SECCOMP_RET_TRAP);
  }

  // Allows the call when the low half of argument `index`, masked, equals `value`, else traps.
  void WhenEqual(uint32_t number, int index, uint32_t mask, uint32_t value) {
    Add(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 5);
    Load(Argument(index));
    Add(BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
    Add(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
    Return(SECCOMP_RET_ALLOW);
    Return(SECCOMP_RET_TRAP);
  }

  // Allows the call when argument `index` is zero in both halves, else traps.
  void WhenNull(uint32_t number, int index) {
    Add(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 6);
    Load(Argument(index));
    Add(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 3);
    Load(Argument(index) + 4);
    Add(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1);
    Return(SECCOMP_RET_ALLOW);
    Return(SECCOMP_RET_TRAP);
  }

  int Install() {
    Return(SECCOMP_RET_TRAP);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
    const sock_fprog program{count_, instructions_};
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program) !=
        0) {
      return errno;
    }
    return 0;
  }

 private:
  // The architectures here are little-endian: the low half comes first.
  static uint32_t Argument(int index) {
    return static_cast<uint32_t>(offsetof(seccomp_data, args) + 8 * static_cast<size_t>(index));
  }
  void Load(uint32_t offset) { Add(BPF_LD | BPF_W | BPF_ABS, offset, 0, 0); }
  void Return(uint32_t action) { Add(BPF_RET | BPF_K, action, 0, 0); }
  void Add(uint16_t code, uint32_t k, uint8_t when_true, uint8_t when_false) {
    if (count_ == std::size(instructions_)) __builtin_trap();
    instructions_[count_++] = sock_filter{code, when_true, when_false, k};
  }

  sock_filter instructions_[256];
  uint16_t count_ = 0;
};

}  // namespace

int InstallGuestFilter(GuestFilterStage stage) {
  Program program;
  for (const uint32_t number : kAlwaysAllowed) program.Always(number, SECCOMP_RET_ALLOW);
  for (const uint32_t number : kRefusedQuietly) program.Always(number, kErrno | ENOTTY);
  // An end by a signal is told on as 128 and its number: no candidate may exit with such a code,
  // for that of SIGKILL would make its end the machine's fault.
  program.WhenEqual(SYS_exit, 0, kSignalledExitBit, 0);
  program.WhenEqual(SYS_exit_group, 0, kSignalledExitBit, 0);
  program.WhenNull(SYS_prlimit64, 2);
  program.WhenEqual(SYS_tgkill, 2, ~0u, SIGABRT);
  // Signals 32 and 33 are the C library's own. It sets them before it starts a thread, and it is
  // the thread that is to be refused.
  program.WhenEqual(SYS_rt_sigaction, 0, ~1u, 32);
  if (stage == GuestFilterStage::kLoading) {
    for (const uint32_t number : kLoadingAllowed) program.Always(number, SECCOMP_RET_ALLOW);
    program.WithoutBits(SYS_openat, 2, O_ACCMODE | O_CREAT | O_TRUNC);
  } else {
    program.WithoutBits(SYS_mmap, 2, PROT_EXEC);
    program.WithoutBits(SYS_mprotect, 2, PROT_EXEC);
  }
  return program.Install();
}

}  // namespace assay
