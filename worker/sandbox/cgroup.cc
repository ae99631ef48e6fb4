#include "worker/sandbox/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "worker/sandbox/cgroup_home.h"
#include "worker/sandbox/cgroup_tree.h"

namespace assay {
namespace {

// The kernel charges in batches, so that the last one may be missing from the peak.
constexpr int64_t kChargeSlackBytes = 1 << 20;
constexpr int kSuffixesMax = 4096;        // sandboxes of one process and slot at once
constexpr int kRemoveAttemptsMax = 2000;  // one millisecond each

std::string ReadSmall(const std::string& path) { return MachineCgroupTree().Read(path); }

// 0 or errno.
int WriteSmall(const std::string& path, const std::string& text) {
  return MachineCgroupTree().Write(path, text);
}

// Value of the line "key value"; -1 when there is none.
int64_t KeyedValue(const std::string& text, const std::string& key) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    int64_t value;
    if (words.size() == 2 && words[0] == key && absl::SimpleAtoi(words[1], &value)) return value;
  }
  return -1;
}

// Only those that this process can see: another container's have no number here.
void KillMembers(const std::string& path) {
  for (const absl::string_view line : absl::StrSplit(ReadSmall(path + "/cgroup.procs"), '\n')) {
    int pid;
    if (absl::SimpleAtoi(line, &pid) && pid > 1) kill(pid, SIGKILL);
  }
}

// Makes home/<pid>-<slot>-<n> with the first n that is free.
absl::StatusOr<std::string> MakeGroup(const std::string& home, int slot) {
  for (int suffix = 0; suffix < kSuffixesMax; ++suffix) {
    const std::string path = absl::StrCat(home, "/", getpid(), "-", slot, "-", suffix);
    if (mkdir(path.c_str(), 0755) == 0) return path;
    if (errno != EEXIST) return ErrnoError(errno, absl::StrCat("mkdir ", path));
  }
  return absl::UnavailableError(
      absl::StrCat(home, " holds ", kSuffixesMax, " groups of this process; they leak"));
}

absl::StatusOr<UniqueFd> OpenEntry(const std::string& path) {
  const std::string name = path + "/cgroup.procs";
  UniqueFd fd(open(name.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoError(errno, absl::StrCat("open ", name));
  return fd;
}

void RemoveGroup(const std::string& path) {
  for (int attempt = 0; attempt < kRemoveAttemptsMax; ++attempt) {
    if (rmdir(path.c_str()) == 0 || errno == ENOENT) return;
    KillCgroup(path);
    usleep(1000);
  }
}

}  // namespace

void KillCgroup(const std::string& path) {
  // v2 since Linux 5.14: all at once, also those that fork meanwhile.
  if (WriteSmall(path + "/cgroup.kill", "1") != 0) KillMembers(path);
}

void SweepCgroups(const std::string& home) {
  DIR* directory = opendir(home.c_str());
  if (directory == nullptr) return;
  // Groups are named <pid>-<slot>-<n>.
  while (const dirent* entry = readdir(directory)) {
    const int pid = std::atoi(entry->d_name);
    if (pid <= 0 || kill(pid, 0) == 0 || errno != ESRCH) continue;
    const std::string path = absl::StrCat(home, "/", entry->d_name);
    // Not KillCgroup: a process that cannot be seen may be the live one of another container.
    if (rmdir(path.c_str()) != 0 && errno == EBUSY) KillMembers(path);
  }
  closedir(directory);
}

absl::Status Cgroup::LimitMemory(int64_t bytes_max) {
  memory_bytes_max_ = bytes_max;
  ASSAY_ASSIGN_OR_RETURN(memory_entry_, OpenEntry(memory_path_));
  if (bytes_max <= 0) return absl::OkStatus();
  const std::string limit = memory_path_ + (unified_ ? "/memory.max" : "/memory.limit_in_bytes");
  if (const int error = WriteSmall(limit, absl::StrCat(bytes_max)); error != 0) {
    return ErrnoError(error, absl::StrCat("write ", limit));
  }
  // Swap does not exist in every kernel; then there is nothing to limit.
  const std::string swap =
      memory_path_ + (unified_ ? "/memory.swap.max" : "/memory.memsw.limit_in_bytes");
  (void)WriteSmall(swap, unified_ ? "0" : absl::StrCat(bytes_max));
  return absl::OkStatus();
}

absl::Status Cgroup::LimitPids(int processes_max) {
  if (pids_path_ != memory_path_) {
    ASSAY_ASSIGN_OR_RETURN(pids_entry_, OpenEntry(pids_path_));
  }
  if (processes_max <= 0) return absl::OkStatus();
  const std::string limit = pids_path_ + "/pids.max";
  if (const int error = WriteSmall(limit, absl::StrCat(processes_max)); error != 0) {
    return ErrnoError(error, absl::StrCat("write ", limit));
  }
  return absl::OkStatus();
}

absl::StatusOr<Cgroup> Cgroup::Create(int slot, int64_t memory_bytes_max, int processes_max) {
  const CgroupHome& home = FindCgroupHome();
  std::string memory_path;
  std::string pids_path;
  if (!home.memory_path.empty()) {
    ASSAY_ASSIGN_OR_RETURN(memory_path, MakeGroup(home.memory_path, slot));
  }
  if (home.unified && home.pids_path == home.memory_path) {
    pids_path = memory_path;
  } else if (!home.pids_path.empty()) {
    absl::StatusOr<std::string> made = MakeGroup(home.pids_path, slot);
    if (!made.ok()) {
      if (!memory_path.empty()) RemoveGroup(memory_path);
      return made.status();
    }
    pids_path = *std::move(made);
  }
  return Adopt(memory_path, pids_path, home.unified, memory_bytes_max, processes_max);
}

absl::StatusOr<Cgroup> Cgroup::Adopt(const std::string& memory_path, const std::string& pids_path,
                                     bool unified, int64_t memory_bytes_max, int processes_max) {
  Cgroup group;
  group.unified_ = unified;
  group.memory_path_ = memory_path;
  group.pids_path_ = pids_path;
  if (!memory_path.empty()) ASSAY_RETURN_IF_ERROR(group.LimitMemory(memory_bytes_max));
  if (!pids_path.empty()) ASSAY_RETURN_IF_ERROR(group.LimitPids(processes_max));
  return group;
}

Cgroup::Cgroup(Cgroup&& other) noexcept
    : unified_(other.unified_),
      memory_bytes_max_(other.memory_bytes_max_),
      memory_path_(std::exchange(other.memory_path_, "")),
      pids_path_(std::exchange(other.pids_path_, "")),
      memory_entry_(std::move(other.memory_entry_)),
      pids_entry_(std::move(other.pids_entry_)) {}

std::vector<int> Cgroup::entry_descriptors() const {
  std::vector<int> all;
  if (memory_entry_.valid()) all.push_back(memory_entry_.get());
  if (pids_entry_.valid()) all.push_back(pids_entry_.get());
  return all;
}

Cgroup::Usage Cgroup::ReadUsage() const {
  Usage usage;
  if (!pids_path_.empty()) {
    usage.processes_limit = KeyedValue(ReadSmall(pids_path_ + "/pids.events"), "max") > 0;
  }
  if (memory_path_.empty()) return usage;
  bool limit_hit;
  int64_t kills;
  int64_t peak = 0;
  if (unified_) {
    const std::string events = ReadSmall(memory_path_ + "/memory.events");
    kills = KeyedValue(events, "oom_kill");
    limit_hit = KeyedValue(events, "oom") > 0;
    (void)absl::SimpleAtoi(ReadSmall(memory_path_ + "/memory.peak"), &peak);
  } else {
    kills = KeyedValue(ReadSmall(memory_path_ + "/memory.oom_control"), "oom_kill");
    int64_t failures = 0;
    int64_t swap_failures = 0;
    (void)absl::SimpleAtoi(ReadSmall(memory_path_ + "/memory.failcnt"), &failures);
    (void)absl::SimpleAtoi(ReadSmall(memory_path_ + "/memory.memsw.failcnt"), &swap_failures);
    (void)absl::SimpleAtoi(ReadSmall(memory_path_ + "/memory.max_usage_in_bytes"), &peak);
    // Newer kernels no longer count failures here; then the peak shows that the limit was met.
    limit_hit = failures + swap_failures > 0 ||
                (memory_bytes_max_ > 0 && peak + kChargeSlackBytes >= memory_bytes_max_);
  }
  usage.memory_limit = kills > 0 && limit_hit;
  usage.machine_oom = kills > 0 && !limit_hit;
  usage.peak_bytes = peak;
  return usage;
}

void Cgroup::Remove() {
  memory_entry_.Reset();
  pids_entry_.Reset();
  if (!memory_path_.empty()) RemoveGroup(memory_path_);
  if (!pids_path_.empty() && pids_path_ != memory_path_) RemoveGroup(pids_path_);
  memory_path_.clear();
  pids_path_.clear();
}

}  // namespace assay
