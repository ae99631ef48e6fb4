#include "worker/guest/fault_report.h"

#include <seccomp.h>
#include <signal.h>
#include <sys/syscall.h>

#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "worker/guest/guest_protocol.h"
#include "worker/sandbox/text.h"

namespace assay {
namespace {

std::string SyscallName(int number) {
  char* name = seccomp_syscall_resolve_num_arch(seccomp_arch_native(), number);
  if (name == nullptr) return absl::StrCat("system call ", number);
  std::string text = absl::StrCat(name, " (system call ", number, ")");
  std::free(name);
  return text;
}

bool CreatesProcess(int number) {
  switch (number) {
    case SYS_clone:
    case SYS_clone3:
#if defined(__x86_64__)
    case SYS_fork:
    case SYS_vfork:
#endif
      return true;
    default:
      return false;
  }
}

// What honest candidates meant, where it is not plain.
const char* SyscallHint(int number) {
  switch (number) {
    case SYS_openat:
      return "; sysconf, std::random_device and std::thread::hardware_concurrency open files too";
    case SYS_exit:
    case SYS_exit_group:
      return " with codes of 128 and more, which stand for signals";
    default:
      return "";
  }
}

const char* SignalHint(int signal_number) {
  return signal_number == SIGILL ? "; this worker's processor may lack the instruction: ask "
                                   "__builtin_cpu_supports first"
                                 : "";
}

GuestEnd Make(GuestFaultKind kind, std::string message, int signal_number = 0) {
  GuestEnd end;
  end.kind = static_cast<int>(kind);
  end.message = std::move(message);
  end.signal = signal_number;
  return end;
}

GuestEnd ExplainAddress(const GuestFaultRecord& fault, const std::vector<TensorPlace>& tensors) {
  const char* verb = fault.is_write != 0 ? "write" : "read";
  for (const TensorPlace& tensor : tensors) {
    if (tensor.address == 0) continue;
    const uint64_t begin = tensor.address - TensorOffset(tensor.buffer.bytes);
    const uint64_t end = begin + TensorFileBytes(tensor.buffer.bytes);
    if (fault.address < begin - kGuardBytes || fault.address >= end + kGuardBytes) continue;
    const auto offset = static_cast<int64_t>(fault.address - tensor.address);
    const bool inside = offset >= 0 && offset < static_cast<int64_t>(tensor.buffer.bytes);
    GuestEnd result =
        inside && !tensor.buffer.writable && fault.is_write != 0
            ? Make(GuestFaultKind::kInputWritten,
                   absl::StrCat("write into the input ", tensor.buffer.name, " at byte ", offset))
            : Make(GuestFaultKind::kOutOfBounds,
                   absl::StrCat(verb, " out of bounds of ", tensor.buffer.name, " at byte ", offset,
                                " of ", tensor.buffer.bytes));
    result.tensor = tensor.buffer.name;
    result.byte_offset = offset;
    result.signal = fault.signal;
    return result;
  }
  return Make(GuestFaultKind::kSignal,
              absl::StrCat(SignalName(fault.signal), ": ", verb, " at address 0x",
                           absl::Hex(fault.address), ", which is near no tensor"),
              fault.signal);
}

GuestEnd ExplainRecord(const GuestFaultRecord& fault, const std::vector<TensorPlace>& tensors) {
  const auto kind = static_cast<GuestFaultKind>(fault.kind.load(std::memory_order_acquire));
  const std::string message =
      CleanText(std::string_view(fault.message, strnlen(fault.message, sizeof(fault.message))));
  switch (kind) {
    case GuestFaultKind::kSignal:
      if (fault.signal == SIGSEGV || fault.signal == SIGBUS) return ExplainAddress(fault, tensors);
      return Make(kind, absl::StrCat(SignalName(fault.signal), SignalHint(fault.signal)),
                  fault.signal);
    case GuestFaultKind::kForbiddenSyscall:
      return Make(CreatesProcess(fault.syscall) ? GuestFaultKind::kProcessCreation : kind,
                  absl::StrCat("called ", SyscallName(fault.syscall), ", which is forbidden",
                               SyscallHint(fault.syscall)),
                  SIGSYS);
    case GuestFaultKind::kLoadFailed:
    case GuestFaultKind::kMemoryLimit:
      return Make(kind, message);
    default:
      // No other kind is written by the guest.
      return Make(GuestFaultKind::kExited, "exited and forged its fault record");
  }
}

}  // namespace

std::string SignalName(int signal_number) {
  const char* name = sigabbrev_np(signal_number);
  const char* text = sigdescr_np(signal_number);
  if (name == nullptr || text == nullptr) return absl::StrCat("signal ", signal_number);
  return absl::StrCat("SIG", name, " (", text, ")");
}

std::optional<GuestEnd> ExplainLimit(const LimitEvidence& evidence) {
  const SandboxExit& exit = evidence.exit;
  const SandboxLimit limit = ClassifyLimit(evidence);
  if (exit.machine_oom && limit != SandboxLimit::kMemory) {
    return Make(GuestFaultKind::kNone, "the machine ran out of memory and killed the guest",
                exit.signal);
  }
  switch (limit) {
    case SandboxLimit::kMemory:
      return Make(
          GuestFaultKind::kMemoryLimit,
          absl::StrCat("used more memory than its limit; peak ", exit.peak_memory_bytes, " bytes"));
    case SandboxLimit::kProcesses:
      return Make(GuestFaultKind::kProcessCreation, "started processes up to its limit");
    case SandboxLimit::kCpu:
      return Make(GuestFaultKind::kTimedOut, "used more CPU time than its limit", exit.signal);
    case SandboxLimit::kFileSize:
      return Make(GuestFaultKind::kOutputFlood, "wrote a file beyond its limit", exit.signal);
    // Whoever ended the guest for it says what took so long, or how much was printed.
    case SandboxLimit::kTime:
    case SandboxLimit::kOutput:
    case SandboxLimit::kArtifactSize:
    case SandboxLimit::kNone:
      break;
  }
  return std::nullopt;
}

GuestEnd ExplainExit(const SandboxExit& exit, const GuestFaultRecord& fault,
                     const std::vector<TensorPlace>& tensors) {
  LimitEvidence evidence;
  evidence.exit = exit;
  if (std::optional<GuestEnd> end = ExplainLimit(evidence); end.has_value()) return *end;
  if (exit.code == kGuestExitFault && fault.kind.load(std::memory_order_acquire) != 0) {
    return ExplainRecord(fault, tensors);
  }
  // The guest's handler names the call, unless the candidate has blocked signals.
  if (exit.signal == SIGSYS) {
    return Make(GuestFaultKind::kForbiddenSyscall,
                "made a forbidden system call with signals blocked, as pthread_create does",
                exit.signal);
  }
  // The candidate cannot send it to itself, nor exit with its code.
  if (exit.signal == SIGKILL) {
    return Make(GuestFaultKind::kNone, "the guest was killed from outside", exit.signal);
  }
  if (exit.signal != 0) {
    return Make(GuestFaultKind::kSignal, SignalName(exit.signal), exit.signal);
  }
  return Make(GuestFaultKind::kExited, absl::StrCat("exited with code ", exit.code));
}

}  // namespace assay
