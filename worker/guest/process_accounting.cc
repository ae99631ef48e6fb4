#include "worker/guest/process_accounting.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace assay {
namespace {

// Fields of /proc/<pid>/stat after the name in parentheses; see proc(5).
constexpr int kFieldState = 3;
constexpr int kFieldProcessor = 39;

// The start of `field`, counted as in proc(5); nullptr when there are fewer.
const char* StatField(const char* text, int field) {
  const char* at = std::strrchr(text, ')');  // the name may hold anything
  if (at == nullptr) return nullptr;
  for (int current = 2; current < field; ++current) {
    at = std::strchr(at, ' ');
    if (at == nullptr) return nullptr;
    ++at;
  }
  return at;
}

bool ReadText(int fd, char* text, size_t bytes) {
  const ssize_t got = pread(fd, text, bytes - 1, 0);
  if (got <= 0) return false;
  text[got] = '\0';
  return true;
}

bool IsAsleep(const char* text) {
  const char* state = StatField(text, kFieldState);
  return state != nullptr && *state == 'S';
}

}  // namespace

absl::StatusOr<ProcessAccounting> ProcessAccounting::Open(int pid) {
  return OpenFolder(absl::StrCat("/proc/", pid));
}

absl::StatusOr<ProcessAccounting> ProcessAccounting::OpenThisThread() {
  return OpenFolder("/proc/thread-self");
}

absl::StatusOr<ProcessAccounting> ProcessAccounting::OpenFolder(const std::string& folder) {
  ProcessAccounting accounting;
  accounting.stat_.Reset(open((folder + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  if (!accounting.stat_.valid()) return ErrnoError(errno, absl::StrCat("open ", folder, "/stat"));
  accounting.schedstat_.Reset(open((folder + "/schedstat").c_str(), O_RDONLY | O_CLOEXEC));
  return accounting;
}

ProcessAccounting::Sample ProcessAccounting::Read() const {
  Sample sample;
  char text[1024];
  if (ReadText(stat_.get(), text, sizeof(text))) {
    const char* core = StatField(text, kFieldProcessor);
    if (core != nullptr) sample.core = std::atoi(core);
  }
  if (schedstat_.valid() && ReadText(schedstat_.get(), text, sizeof(text))) {
    long long cpu_ns = 0;
    long long waited_ns = 0;
    long long timeslices = 0;
    if (std::sscanf(text, "%lld %lld %lld", &cpu_ns, &waited_ns, &timeslices) == 3) {
      sample.cpu_ns = cpu_ns;
      sample.timeslices = timeslices;
      sample.waited_ns = waited_ns;
    }
  }
  return sample;
}

bool ProcessAccounting::Asleep() const {
  char text[1024];
  return ReadText(stat_.get(), text, sizeof(text)) && IsAsleep(text);
}

int64_t DeadlineWithoutWaits(int64_t start_ns, int64_t deadline_ns, int64_t waited_ns) {
  return deadline_ns + std::clamp<int64_t>(waited_ns, 0, deadline_ns - start_ns);
}

}  // namespace assay
