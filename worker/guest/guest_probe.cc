#include "worker/guest/guest_probe.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

extern "C" char** environ;

namespace assay {
namespace {

constexpr int kDescriptorsTried = 4096;
constexpr int kForksMax = 512;

bool CanRead(const char* path) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  close(fd);
  return true;
}

bool CanCreate(const char* path) { return open(path, O_WRONLY | O_CREAT, 0600) >= 0; }

// Writes to a file in /tmp, if there is one; a limit on files is an error here, not a signal.
bool CanFill(int64_t bytes) {
  signal(SIGXFSZ, SIG_IGN);
  static char block[64 << 10];
  const int fd = open("/tmp/fill", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  int64_t written = 0;
  while (fd >= 0 && written < bytes) {
    const ssize_t put = write(fd, block, sizeof(block));
    if (put <= 0) break;
    written += put;
  }
  unlink("/tmp/fill");
  close(fd);
  return written >= bytes;
}

bool CanConnectToName(const char* name) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path + 1, name, sizeof(address.sun_path) - 2);
  const auto length =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + std::strlen(name));
  const bool connected = connect(fd, reinterpret_cast<const sockaddr*>(&address), length) == 0;
  close(fd);
  return connected;
}

// Arguments are such that a kernel which gets to look at them finds another error.
bool ReachesKernel(long result) { return result >= 0 || (errno != EPERM && errno != ENOSYS); }

bool CanConnect(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool connected =
      connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  close(fd);
  return connected;
}

bool CanMakeSocket() { return socket(AF_UNIX, SOCK_STREAM, 0) >= 0; }

bool CanRaiseCoreLimit() {
  const rlimit limit{1, 1};
  return setrlimit(RLIMIT_CORE, &limit) == 0;
}

bool CanTouch(int64_t bytes) {
  void* memory = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  std::memset(memory, 1, static_cast<size_t>(bytes));
  return true;
}

bool CanFork(int count) {
  pid_t children[kForksMax];
  int started = 0;
  for (; started < count && started < kForksMax; ++started) {
    children[started] = fork();
    if (children[started] < 0) break;
    if (children[started] == 0) {
      pause();
      _exit(0);
    }
  }
  for (int i = 0; i < started; ++i) {
    kill(children[i], SIGKILL);
    waitpid(children[i], nullptr, 0);
  }
  return started == count;
}

bool HasDescriptorAbove2() {
  for (int fd = 3; fd < kDescriptorsTried; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) return true;
  }
  return false;
}

// bubblewrap names the working directory itself.
bool HasEnvironment() {
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (std::strncmp(*variable, "PWD=", 4) != 0) return true;
  }
  return false;
}

bool Works(const char* what) {
  const char* colon = std::strchr(what, ':');
  const char* value = colon == nullptr ? "" : colon + 1;
  const auto is = [&](const char* name) {
    const size_t length = colon == nullptr ? std::strlen(what) : static_cast<size_t>(colon - what);
    return std::strlen(name) == length && std::strncmp(what, name, length) == 0;
  };
  if (is("read")) return CanRead(value);
  if (is("connect")) return CanConnect(std::atoi(value));
  if (is("write")) return CanCreate(value);
  if (is("fill")) return CanFill(std::atoll(value));
  if (is("abstract")) return CanConnectToName(value);
  if (is("signal")) return kill(std::atoi(value), 0) == 0;
  if (is("setuid")) return setuid(0) == 0;
  if (is("hostname")) return sethostname("x", 1) == 0;
  if (is("keys")) return ReachesKernel(syscall(SYS_keyctl, -1, 0, 0, 0, 0));
  if (is("ring")) return ReachesKernel(syscall(SYS_io_uring_setup, 1, nullptr));
  if (is("events")) return ReachesKernel(syscall(SYS_perf_event_open, nullptr, 0, -1, -1, 0));
  // ENOSYS alone makes the C library fall back to clone.
  if (is("clone3")) return syscall(SYS_clone3, nullptr, 0) >= 0 || errno != ENOSYS;
  if (is("userns")) return unshare(CLONE_NEWUSER) == 0;
  if (is("ptrace")) return ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0;
  if (is("socket")) return CanMakeSocket();
  if (is("core")) return CanRaiseCoreLimit();
  if (is("memory")) return CanTouch(std::atoll(value));
  if (is("forks")) return CanFork(std::atoi(value));
  if (is("descriptors")) return HasDescriptorAbove2();
  if (is("environment")) return HasEnvironment();
  return true;  // an unknown probe must not look like a wall
}

}  // namespace

int ProbeFromInside(int argc, char** argv) {
  for (int i = 0; i < argc; ++i) {
    if (Works(argv[i])) return i + 1;
  }
  return 0;
}

}  // namespace assay
