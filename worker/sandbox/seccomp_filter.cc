#include "worker/sandbox/seccomp_filter.h"

#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace assay {
namespace {

// What no compiler, assembler, linker or shell needs, and what has opened doors in kernels before.
constexpr const char* kCompileDenied[] = {
    "acct", "add_key", "adjtimex", "bpf", "chroot", "clock_adjtime", "clock_settime",
    "delete_module", "fanotify_init", "finit_module", "fsconfig", "fsmount", "fsopen", "fspick",
    "init_module", "inotify_init", "inotify_init1", "io_setup", "io_uring_enter",
    "io_uring_register", "io_uring_setup", "ioperm", "iopl", "kcmp", "kexec_file_load",
    "kexec_load", "keyctl", "lookup_dcookie", "mbind", "memfd_secret", "migrate_pages", "mknod",
    "mknodat", "mount", "mount_setattr", "move_mount", "move_pages", "mq_open", "name_to_handle_at",
    "nfsservctl", "open_by_handle_at", "open_tree", "perf_event_open", "personality", "pidfd_getfd",
    "pidfd_open", "pivot_root", "process_madvise", "process_vm_readv", "process_vm_writev",
    "ptrace", "quotactl", "quotactl_fd", "reboot", "request_key", "sethostname", "setdomainname",
    "setns", "settimeofday", "swapoff", "swapon", "syslog", "umount2", "unshare", "userfaultfd",
    "ustat", "uselib", "vhangup", "vmsplice",
    // Network and other processes' sockets. Pipes are enough for a compiler.
    "socket", "connect", "bind", "listen", "accept", "accept4", "sendto", "sendmsg", "sendmmsg",
    // Identity.
    "setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setgroups", "setfsuid",
    "setfsgid", "capset",
    // System V and POSIX memory that outlives a process.
    "shmget", "shmat", "semget", "msgget"};

// What a dynamically linked process needs to start, plus what assay-guest needs to set itself up.
constexpr const char* kGuestAllowed[] = {"access",
                                         "arch_prctl",
                                         "brk",
                                         "clock_getres",
                                         "clock_gettime",
                                         "close",
                                         "close_range",
                                         "copy_file_range",
                                         "execve",
                                         "exit",
                                         "exit_group",
                                         "faccessat",
                                         "faccessat2",
                                         "fcntl",
                                         "fstat",
                                         "ftruncate",
                                         "futex",
                                         "getcpu",
                                         "getdents64",
                                         "getegid",
                                         "geteuid",
                                         "getgid",
                                         "getpid",
                                         "getppid",
                                         "getrandom",
                                         "getrlimit",
                                         "gettid",
                                         "gettimeofday",
                                         "getuid",
                                         "lseek",
                                         "madvise",
                                         "mmap",
                                         "mprotect",
                                         "mremap",
                                         "munmap",
                                         "newfstatat",
                                         "openat",
                                         "prctl",
                                         "pread64",
                                         "prlimit64",
                                         "pwrite64",
                                         "read",
                                         "readlink",
                                         "readlinkat",
                                         "readv",
                                         "recvmsg",
                                         "restart_syscall",
                                         "rseq",
                                         "rt_sigaction",
                                         "rt_sigprocmask",
                                         "rt_sigreturn",
                                         "sched_getaffinity",
                                         "sched_yield",
                                         "seccomp",
                                         "sendmsg",
                                         "sendto",
                                         "set_robust_list",
                                         "set_tid_address",
                                         "sigaltstack",
                                         "stat",
                                         "statx",
                                         "sysinfo",
                                         "tgkill",
                                         "time",
                                         "uname",
                                         "unlink",
                                         "unlinkat",
                                         "write",
                                         "writev"};

using Context = std::unique_ptr<void, decltype(&seccomp_release)>;

absl::Status Fail(int error, const std::string& what) {
  return ErrnoError(-error, absl::StrCat("seccomp: ", what));
}

absl::Status AddRule(const Context& context, uint32_t action, const char* name,
                     const std::vector<scmp_arg_cmp>& arguments = {}) {
  const int number = seccomp_syscall_resolve_name(name);
  // Names that this kernel's headers do not know cannot be called either.
  if (number == __NR_SCMP_ERROR) return absl::OkStatus();
  const int error = seccomp_rule_add_array(
      context.get(), action, number, static_cast<unsigned int>(arguments.size()), arguments.data());
  if (error != 0 && error != -EACCES) return Fail(error, name);
  return absl::OkStatus();
}

absl::StatusOr<std::string> Export(const Context& context) {
  UniqueFd fd(memfd_create("assay-seccomp", MFD_CLOEXEC));
  if (!fd.valid()) return ErrnoError(errno, "memfd_create");
  if (const int error = seccomp_export_bpf(context.get(), fd.get()); error != 0) {
    return Fail(error, "export");
  }
  if (lseek(fd.get(), 0, SEEK_SET) != 0) return ErrnoError(errno, "lseek");
  return ReadToEnd(fd.get(), 1 << 20);
}

absl::StatusOr<std::string> MakeCompileProgram() {
  Context context(seccomp_init(SCMP_ACT_ALLOW), &seccomp_release);
  if (context == nullptr) return absl::InternalError("seccomp_init failed");
  for (const char* name : kCompileDenied) {
    ASSAY_RETURN_IF_ERROR(AddRule(context, SCMP_ACT_ERRNO(EPERM), name));
  }
  // ENOSYS makes the C library fall back to clone, whose flags can be seen.
  ASSAY_RETURN_IF_ERROR(AddRule(context, SCMP_ACT_ERRNO(ENOSYS), "clone3"));
  for (const uint64_t flag : {CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC,
                              CLONE_NEWUTS, CLONE_NEWCGROUP}) {
    ASSAY_RETURN_IF_ERROR(AddRule(context, SCMP_ACT_ERRNO(EPERM), "clone",
                                  {SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag)}));
  }
  for (const uint64_t request : {TIOCSTI, TIOCLINUX}) {
    ASSAY_RETURN_IF_ERROR(AddRule(context, SCMP_ACT_ERRNO(EPERM), "ioctl",
                                  {SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffu, request)}));
  }
  return Export(context);
}

absl::StatusOr<std::string> MakeGuestProgram() {
  Context context(seccomp_init(SCMP_ACT_ERRNO(EPERM)), &seccomp_release);
  if (context == nullptr) return absl::InternalError("seccomp_init failed");
  (void)seccomp_attr_set(context.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);
  for (const char* name : kGuestAllowed) {
    ASSAY_RETURN_IF_ERROR(AddRule(context, SCMP_ACT_ALLOW, name));
  }
  ASSAY_RETURN_IF_ERROR(AddRule(context, SCMP_ACT_ERRNO(ENOSYS), "clone3"));
  ASSAY_RETURN_IF_ERROR(AddRule(context, SCMP_ACT_ERRNO(ENOTTY), "ioctl"));
  return Export(context);
}

const absl::StatusOr<std::string>& Program(SyscallFilter filter) {
  static const absl::StatusOr<std::string> compile = MakeCompileProgram();
  static const absl::StatusOr<std::string> guest = MakeGuestProgram();
  return filter == SyscallFilter::kCompile ? compile : guest;
}

}  // namespace

absl::StatusOr<UniqueFd> OpenSeccompProgram(SyscallFilter filter) {
  if (filter == SyscallFilter::kNone) return absl::InvalidArgumentError("kNone has no program");
  const absl::StatusOr<std::string>& program = Program(filter);
  if (!program.ok()) return program.status();
  UniqueFd fd(memfd_create("assay-seccomp", MFD_CLOEXEC));
  if (!fd.valid()) return ErrnoError(errno, "memfd_create");
  ASSAY_RETURN_IF_ERROR(WriteAll(fd.get(), *program));
  if (lseek(fd.get(), 0, SEEK_SET) != 0) return ErrnoError(errno, "lseek");
  return fd;
}

}  // namespace assay
