// assay-guest: the untrusted process. It maps what the runner sends, loads the candidate and calls
// it on command. Everything after dlopen is as hostile as the candidate; nothing here is secret.
//
// No dependency but the C and C++ runtime: its start is part of every evaluation. Never built with
// sanitizers, which do not start behind these walls.
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "worker/guest/control_block.h"
#include "worker/guest/guest_filter.h"
#include "worker/guest/guest_probe.h"
#include "worker/guest/guest_protocol.h"

namespace assay {
namespace {

using Invoke = void (*)(void* const* tensors, const int64_t* axes);

constexpr size_t kAlternateStackBytes = 64 << 10;
// About half a millisecond; then the core is given away between looks.
constexpr int kSpinsMax = 20'000;
constexpr char kArtifactPath[] = "/tmp/candidate.so";

// Signal handlers and the new-handler take no arguments of ours, so this one pointer is global.
GuestControlBlock* g_block = nullptr;

[[noreturn]] void FailSetup(const char* what) {
  (void)!dprintf(2, "assay-guest: %s: %s\n", what, std::strerror(errno));
  _exit(kGuestExitSetup);
}

[[noreturn]] void Report(GuestFaultKind kind, const char* message) {
  std::strncpy(g_block->fault.message, message, sizeof(g_block->fault.message) - 1);
  g_block->fault.kind.store(static_cast<uint32_t>(kind), std::memory_order_release);
  _exit(kGuestExitFault);
}

bool IsWrite(const ucontext_t* context) {
#if defined(__x86_64__)
  return (context->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#else
  return false;
#endif
}

void HandleFault(int signal_number, siginfo_t* info, void* context) {
  GuestFaultRecord& fault = g_block->fault;
  fault.signal = signal_number;
  if (signal_number == SIGSYS) {
    fault.syscall = info->si_syscall;
    Report(GuestFaultKind::kForbiddenSyscall, "");
  }
  if (signal_number == SIGSEGV || signal_number == SIGBUS) {
    fault.address = reinterpret_cast<uint64_t>(info->si_addr);
    fault.is_write = IsWrite(static_cast<const ucontext_t*>(context)) ? 1 : 0;
  }
  Report(GuestFaultKind::kSignal, "");
}

// Of an exception that nobody catches. One who asks for memory and can do without it goes on.
void HandleTerminate() {
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    Report(GuestFaultKind::kMemoryLimit, "operator new failed");
  } catch (...) {
  }
  std::abort();
}

void InstallHandlers() {
  const size_t bytes = kAlternateStackBytes + 2 * kPageBytes;
  char* region = static_cast<char*>(
      mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (region == MAP_FAILED ||
      mprotect(region + kPageBytes, kAlternateStackBytes, PROT_READ | PROT_WRITE) != 0) {
    FailSetup("alternate stack");
  }
  stack_t stack = {};
  stack.ss_sp = region + kPageBytes;
  stack.ss_size = kAlternateStackBytes;
  if (sigaltstack(&stack, nullptr) != 0) FailSetup("sigaltstack");
  struct sigaction action = {};
  action.sa_sigaction = HandleFault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (const int signal_number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP}) {
    if (sigaction(signal_number, &action, nullptr) != 0) FailSetup("sigaction");
  }
  std::set_terminate(HandleTerminate);
}

GuestControlBlock* MapControlBlock() {
  void* memory = mmap(nullptr, sizeof(GuestControlBlock), PROT_READ | PROT_WRITE, MAP_SHARED,
                      kGuestControlFd, 0);
  if (memory == MAP_FAILED) FailSetup("control block");
  return static_cast<GuestControlBlock*>(memory);
}

long Futex(std::atomic<uint32_t>* word, int operation, uint32_t value) {
  return syscall(SYS_futex, word, operation, value, nullptr, nullptr, 0);
}

void SetState(GuestState state) {
  g_block->state.store(static_cast<uint32_t>(state), std::memory_order_release);
}

// Everything the runner sent.
struct Received {
  GuestSetup setup;
  int artifact = -1;
  int tensors[kGuestTensorsMax];
};

void Receive(Received* received) {
  constexpr size_t kDescriptorsMax = 1 + kGuestTensorsMax;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kDescriptorsMax)];
  iovec part{&received->setup, sizeof(received->setup)};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t got;
  do {
    got = recvmsg(kGuestSocketFd, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got == 0) _exit(0);  // the runner no longer wants this guest
  if (got != sizeof(received->setup)) FailSetup("setup message");
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  const size_t count = 1 + received->setup.tensor_count;
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS ||
      header->cmsg_len != CMSG_LEN(count * sizeof(int)) || count > kDescriptorsMax) {
    FailSetup("descriptors of the setup message");
  }
  int all[kDescriptorsMax];
  std::memcpy(all, CMSG_DATA(header), count * sizeof(int));
  received->artifact = all[0];
  std::memcpy(received->tensors, all + 1, (count - 1) * sizeof(int));
}

// A page-aligned address in the lower 64 TiB, so that tensors lie far apart and elsewhere in every
// guest.
void* RandomHint() {
  uint64_t random = 0;
  if (getrandom(&random, sizeof(random), 0) != sizeof(random)) return nullptr;
  return reinterpret_cast<void*>((random % (uint64_t{1} << 46)) & ~(kPageBytes - 1));
}

// Maps one tensor between guards; the address of its first element.
uint64_t MapTensor(int fd, const GuestTensorSetup& tensor) {
  const uint64_t file_bytes = TensorFileBytes(tensor.bytes);
  const uint64_t region_bytes = file_bytes + 2 * kGuardBytes;
  void* region = mmap(RandomHint(), region_bytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (region == MAP_FAILED) FailSetup("guards");
  char* begin = static_cast<char*>(region) + kGuardBytes;
  const int protection = tensor.writable != 0 ? PROT_READ | PROT_WRITE : PROT_READ;
  if (mmap(begin, file_bytes, protection, MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, 0) ==
      MAP_FAILED) {
    FailSetup("tensor");
  }
  return reinterpret_cast<uint64_t>(begin) + TensorOffset(tensor.bytes);
}

void SendLayout(const GuestLayout& layout) {
  if (send(kGuestSocketFd, &layout, sizeof(layout), MSG_NOSIGNAL) != sizeof(layout)) {
    FailSetup("layout");
  }
}

// The loader needs a path, and behind the walls there is no /proc: the artifact is copied into the
// sandbox's own /tmp.
void CopyArtifact(int fd) {
  const int out = open(kArtifactPath, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0500);
  if (out < 0) FailSetup(kArtifactPath);
  static char buffer[64 << 10];
  off_t at = 0;
  while (true) {
    const ssize_t got = pread(fd, buffer, sizeof(buffer), at);
    if (got < 0) FailSetup("read of the artifact");
    if (got == 0) break;
    for (ssize_t put = 0; put < got;) {
      const ssize_t step = write(out, buffer + put, static_cast<size_t>(got - put));
      if (step < 0) FailSetup("copy of the artifact");
      put += step;
    }
    at += got;
  }
  close(out);
}

void LimitAddressSpace(uint64_t bytes) {
  if (bytes == 0) return;
  const rlimit limit{bytes, bytes};
  if (setrlimit(RLIMIT_AS, &limit) != 0) FailSetup("RLIMIT_AS");
}

// From here on candidate code runs.
Invoke LoadArtifact(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    Report(GuestFaultKind::kLoadFailed, reason == nullptr ? "dlopen failed" : reason);
  }
  void* symbol = dlsym(library, "assay_invoke");
  if (symbol == nullptr) Report(GuestFaultKind::kLoadFailed, "assay_invoke is not in the artifact");
  return reinterpret_cast<Invoke>(symbol);
}

void Pause() {
#if defined(__x86_64__)
  _mm_pause();
#else
  asm volatile("yield");
#endif
}

// Spins until *word differs from `old`; the new value.
uint64_t SpinWhileEqual(const std::atomic<uint64_t>& word, uint64_t old) {
  for (int spins = 0;; ++spins) {
    const uint64_t value = word.load(std::memory_order_acquire);
    if (value != old) return value;
    if (spins < kSpinsMax) {
      Pause();
    } else {
      sched_yield();
    }
  }
}

// Streaming stores pass later ones unless they are fenced: without this a call could be complete
// before its outputs are.
void FenceStores() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

#if defined(__x86_64__)
constexpr uint32_t kMxcsrDefault = 0x1f80;
constexpr uint32_t kMxcsrControl = 0xffc0;  // the rest is flags, which any arithmetic may set
constexpr uint32_t kX87Default = 0x037f;
constexpr uint32_t kX87Control = 0x0f3f;
#endif

// What the candidate may have changed about arithmetic in its last call, or while it was loaded, is
// undone.
void ResetFloatingPoint() {
#if defined(__x86_64__)
  asm volatile("fninit");
  _mm_setcsr(kMxcsrDefault);
#endif
}

void NoteFloatingPoint() {
#if defined(__x86_64__)
  uint16_t x87 = 0;
  asm volatile("fnstcw %0" : "=m"(x87));
  const uint32_t changed = ((_mm_getcsr() ^ kMxcsrDefault) & kMxcsrControl) |
                           (((x87 ^ kX87Default) & kX87Control) << 16);
  if (changed != 0) g_block->fp_control.fetch_or(changed, std::memory_order_relaxed);
#endif
}

__attribute__((noinline)) void Empty(void* const* tensors, const int64_t* axes) {
  asm volatile("" : : "r"(tensors), "r"(axes) : "memory");
}

[[noreturn]] void Serve(Invoke invoke, void* const* tensors, const int64_t* axes) {
  uint32_t command = g_block->command.load(std::memory_order_acquire);
  SetState(GuestState::kLoaded);
  (void)Futex(&g_block->state, FUTEX_WAKE, 1);
  while (true) {
    while (g_block->command.load(std::memory_order_acquire) == command) {
      (void)Futex(&g_block->command, FUTEX_WAIT, command);
    }
    command = g_block->command.load(std::memory_order_acquire);
    const uint64_t before = g_block->go.load(std::memory_order_relaxed);
    const bool empty = g_block->action.load(std::memory_order_relaxed) ==
                       static_cast<uint32_t>(GuestAction::kEmpty);
    const Invoke function = empty ? &Empty : invoke;
    ResetFloatingPoint();
    SetState(GuestState::kArmed);
    g_block->armed.store(command, std::memory_order_release);
    const uint64_t turn = SpinWhileEqual(g_block->go, before);
    function(tensors, axes);
    FenceStores();
    g_block->done.store(turn, std::memory_order_release);
    NoteFloatingPoint();
    SetState(GuestState::kLoaded);
  }
}

int Run(bool direct) {
  g_block = MapControlBlock();
  InstallHandlers();
  std::setvbuf(stdout, nullptr, _IOLBF, 1 << 12);
  SetState(GuestState::kReady);
  Received received;
  Receive(&received);
  const GuestSetup& setup = received.setup;
  void* tensors[kGuestTensorsMax] = {};
  GuestLayout layout;
  for (uint32_t i = 0; i < setup.tensor_count; ++i) {
    layout.tensor_address[i] = MapTensor(received.tensors[i], setup.tensors[i]);
    tensors[i] = reinterpret_cast<void*>(layout.tensor_address[i]);
  }
  char path[64];
  int keep = -1;
  if (direct) {
    keep = received.artifact;
    std::snprintf(path, sizeof(path), "/proc/self/fd/%d", keep);
  } else {
    CopyArtifact(received.artifact);
    std::snprintf(path, sizeof(path), "%s", kArtifactPath);
  }
  LimitAddressSpace(setup.address_space_bytes);
  SendLayout(layout);
  // Every descriptor but output, and the artifact where it is loaded from it.
  if (keep > 3) (void)close_range(3, static_cast<unsigned int>(keep) - 1, 0);
  (void)close_range(keep >= 3 ? static_cast<unsigned int>(keep) + 1 : 3, ~0u, 0);
  if (InstallGuestFilter(GuestFilterStage::kLoading) != 0) FailSetup("filter for loading");
  const Invoke invoke = LoadArtifact(path);
  if (keep >= 0) close(keep);
  if (InstallGuestFilter(GuestFilterStage::kCalling) != 0) FailSetup("filter for calls");
  Serve(invoke, tensors, setup.axes);
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], assay::kGuestProbeFlag) == 0) {
    return assay::ProbeFromInside(argc - 2, argv + 2);
  }
  return assay::Run(argc > 1 && std::strcmp(argv[1], assay::kGuestDirectFlag) == 0);
}
