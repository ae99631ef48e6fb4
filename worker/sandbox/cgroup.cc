#include "worker/sandbox/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"

namespace assay {
namespace {

constexpr char kHomeName[] = "assay";
constexpr char kSelfLeaf[] = "assay-self";
// The kernel charges in batches, so that the last one may be missing from the peak.
constexpr int64_t kChargeSlackBytes = 1 << 20;
constexpr int kSuffixesMax = 4096;        // sandboxes of one process and slot at once
constexpr int kRemoveAttemptsMax = 2000;  // one millisecond each

std::string ReadSmall(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  std::string text(65536, '\0');
  const ssize_t got = read(fd, text.data(), text.size());
  close(fd);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return text;
}

// 0 or errno.
int WriteSmall(const std::string& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const ssize_t put = write(fd, text.data(), text.size());
  const int error = put < 0 ? errno : 0;
  close(fd);
  return error;
}

bool IsDirectory(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
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

// Mount point of the v1 hierarchy with `controller`, or of v2 when `controller` is empty.
std::string MountPoint(const std::string& root, const std::string& controller) {
  const std::string mounts = ReadSmall(root + "/proc/self/mountinfo");
  for (const absl::string_view line : absl::StrSplit(mounts, '\n')) {
    const std::vector<std::string> halves = absl::StrSplit(line, absl::MaxSplits(" - ", 1));
    if (halves.size() != 2) continue;
    const std::vector<std::string> left = absl::StrSplit(halves[0], ' ');
    const std::vector<std::string> right = absl::StrSplit(halves[1], ' ');
    if (left.size() < 5 || right.size() < 3) continue;
    if (controller.empty() ? right[0] == "cgroup2" : right[0] == "cgroup") {
      const std::vector<std::string> options = absl::StrSplit(right[2], ',');
      if (controller.empty() ||
          std::find(options.begin(), options.end(), controller) != options.end()) {
        return root + left[4];
      }
    }
  }
  return "";
}

// Directory of this process's own group; the mount point when a container hides it.
std::string OwnGroup(const std::string& root, const std::string& mount_point,
                     const std::string& controller) {
  const std::string groups = ReadSmall(root + "/proc/self/cgroup");
  for (const absl::string_view line : absl::StrSplit(groups, '\n')) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const std::vector<std::string> names = absl::StrSplit(parts[1], ',');
    const bool matches = controller.empty()
                             ? parts[1].empty()
                             : std::find(names.begin(), names.end(), controller) != names.end();
    if (!matches) continue;
    std::string path = parts[2] == "/" ? mount_point : absl::StrCat(mount_point, parts[2]);
    const std::string leaf = absl::StrCat("/", kSelfLeaf);
    if (absl::EndsWith(path, leaf)) path.resize(path.size() - leaf.size());
    if (IsDirectory(path)) return path;
  }
  return mount_point;
}

// Only those that this process can see: another container's have no number here.
void KillMembers(const std::string& path) {
  for (const absl::string_view line : absl::StrSplit(ReadSmall(path + "/cgroup.procs"), '\n')) {
    int pid;
    if (absl::SimpleAtoi(line, &pid) && pid > 1) kill(pid, SIGKILL);
  }
}

// Makes .../assay under the process's own group; an empty result leaves the reason in `note`.
std::string MakeHome(const std::string& own, std::string* note) {
  const std::string home = absl::StrCat(own, "/", kHomeName);
  if (mkdir(home.c_str(), 0755) != 0 && errno != EEXIST) {
    *note = absl::StrCat("cannot make ", home, ": ", std::strerror(errno),
                         "; run the worker as root or delegate the cgroup to it");
    return "";
  }
  if (access(home.c_str(), W_OK) != 0) {
    *note = absl::StrCat(home, " is not writable; delegate the cgroup to the worker");
    return "";
  }
  SweepCgroups(home);
  return home;
}

bool HasWord(const std::string& text, const std::string& word) {
  const std::vector<std::string> words = absl::StrSplit(text, absl::ByAnyChar(" \n"));
  return std::find(words.begin(), words.end(), word) != words.end();
}

// v2 lets a group hand controllers down only when it holds no process itself, so this process moves
// into a leaf beside the sandboxes when it has to.
bool EnableUnified(const std::string& own, std::string* note) {
  const std::string control = own + "/cgroup.subtree_control";
  int error = WriteSmall(control, "+memory +pids");
  if (error == EBUSY) {
    const std::string leaf = absl::StrCat(own, "/", kSelfLeaf);
    if (mkdir(leaf.c_str(), 0755) == 0 || errno == EEXIST) {
      error = WriteSmall(leaf + "/cgroup.procs", absl::StrCat(getpid()));
      if (error == 0) error = WriteSmall(control, "+memory +pids");
    }
  }
  if (error != 0) {
    *note = absl::StrCat("cannot enable memory and pids in ", control, ": ", std::strerror(error),
                         "; start the worker in a delegated cgroup of its own");
    return false;
  }
  return true;
}

bool FindUnified(const std::string& root, CgroupHome* home) {
  const std::string mount_point = MountPoint(root, "");
  if (mount_point.empty()) return false;
  const std::string own = OwnGroup(root, mount_point, "");
  const std::string controllers = ReadSmall(own + "/cgroup.controllers");
  if (!HasWord(controllers, "memory") || !HasWord(controllers, "pids")) return false;
  home->unified = true;
  std::string note;
  std::string path;
  if (EnableUnified(own, &note)) path = MakeHome(own, &note);
  if (!path.empty() && !EnableUnified(path, &note)) path.clear();
  home->memory_path = home->pids_path = path;
  home->memory_note = home->pids_note = note;
  return true;
}

std::string FindLegacy(const std::string& root, const std::string& controller, std::string* note) {
  const std::string mount_point = MountPoint(root, controller);
  if (mount_point.empty()) {
    *note = absl::StrCat("no cgroup hierarchy with ", controller, " is mounted");
    return "";
  }
  return MakeHome(OwnGroup(root, mount_point, controller), note);
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
    KillMembers(path);
    usleep(1000);
  }
}

}  // namespace

void SweepCgroups(const std::string& home) {
  DIR* directory = opendir(home.c_str());
  if (directory == nullptr) return;
  // Groups are named <pid>-<slot>-<n>.
  while (const dirent* entry = readdir(directory)) {
    const int pid = std::atoi(entry->d_name);
    if (pid <= 0 || kill(pid, 0) == 0 || errno != ESRCH) continue;
    const std::string path = absl::StrCat(home, "/", entry->d_name);
    if (rmdir(path.c_str()) != 0 && errno == EBUSY) KillMembers(path);
  }
  closedir(directory);
}

CgroupHome MakeCgroupHome(const std::string& root) {
  CgroupHome home;
  if (FindUnified(root, &home)) return home;
  home.memory_path = FindLegacy(root, "memory", &home.memory_note);
  home.pids_path = FindLegacy(root, "pids", &home.pids_note);
  return home;
}

const CgroupHome& FindCgroupHome() {
  static const CgroupHome home = MakeCgroupHome("");
  return home;
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
  if (home.unified) {
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
