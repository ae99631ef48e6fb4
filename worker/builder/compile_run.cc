#include "worker/builder/compile_run.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/status.h"

namespace assay {
namespace {

constexpr int kArtifactDescriptor = 3;
constexpr absl::Duration kReapMax = absl::Seconds(30);

// Arguments come as "$@" and are never part of the script.
constexpr char kBuildScript[] = R"("$@" </dev/null && exec cat /tmp/artifact >&3)";
constexpr char kPlainScript[] = R"(exec "$@")";

absl::StatusOr<UniqueFd> MemoryFile(std::string_view bytes) {
  UniqueFd fd(memfd_create("assay-source", MFD_CLOEXEC));
  if (!fd.valid()) return ErrnoError(errno, "memfd_create");
  ASSAY_RETURN_IF_ERROR(WriteAll(fd.get(), bytes));
  return fd;
}

// A pipe's reading end with its cap.
struct Capture {
  UniqueFd reader;
  size_t bytes_max;
  std::string bytes;
  bool over = false;
  bool open = true;

  absl::StatusOr<UniqueFd> Open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoError(errno, "pipe2");
    reader.Reset(ends[0]);
    if (fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) return ErrnoError(errno, "fcntl");
    return UniqueFd(ends[1]);
  }

  void Take() {
    char buffer[64 << 10];
    while (open) {
      const ssize_t got = read(reader.get(), buffer, sizeof(buffer));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return;
      if (got == 0) open = false;
      const size_t room = bytes_max - bytes.size();
      bytes.append(buffer, std::min(room, static_cast<size_t>(got)));
      if (static_cast<size_t>(got) > room) {
        over = true;
        open = false;
      }
    }
  }
};

SandboxOptions MakeSandboxOptions(const CompileRunOptions& options) {
  SandboxOptions sandbox;
  sandbox.arguments = {"/bin/sh", "-c", options.want_artifact ? kBuildScript : kPlainScript, "sh"};
  sandbox.arguments.insert(sandbox.arguments.end(), options.arguments.begin(),
                           options.arguments.end());
  sandbox.environment = {"PATH=/usr/bin:/bin", "LC_ALL=C", "TMPDIR=/tmp",
                         // What __DATE__ and __TIME__ say: builds repeat.
                         "SOURCE_DATE_EPOCH=0"};
  sandbox.read_only_binds = options.read_only_binds;
  sandbox.working_directory = options.files.empty() ? "/" : kSourceFolder;
  sandbox.filter = SyscallFilter::kCompile;
  sandbox.slot = options.slot;
  sandbox.memory_bytes_max = options.memory_bytes_max;
  sandbox.tmpfs_bytes_max = kCompileTmpfsBytes;
  sandbox.processes_max = kCompileProcessesMax;
  sandbox.file_bytes_max = kCompileFileBytesMax;
  sandbox.files = options.programs;
  sandbox.fixed_addresses = options.fixed_addresses;
  sandbox.cpu_seconds_max = absl::ToInt64Seconds(options.timeout + kCompileCpuBeyond);
  return sandbox;
}

// Until the sandbox has ended, a cap is passed or the time is up.
void Collect(const Sandbox& sandbox, absl::Time deadline, Capture* log, Capture* artifact,
             bool* timed_out) {
  while (!log->over && !artifact->over) {
    pollfd entries[3] = {{sandbox.end_descriptor(), POLLIN, 0},
                         {log->open ? log->reader.get() : -1, POLLIN, 0},
                         {artifact->open ? artifact->reader.get() : -1, POLLIN, 0}};
    const int64_t left_ms = absl::ToInt64Milliseconds(deadline - absl::Now());
    if (left_ms <= 0) {
      *timed_out = true;
      return;
    }
    const int ready = poll(entries, 3, static_cast<int>(std::min<int64_t>(left_ms + 1, 1 << 30)));
    if (ready < 0 && errno != EINTR) return;
    log->Take();
    artifact->Take();
    if (ready > 0 && entries[0].revents != 0) {
      log->Take();
      artifact->Take();
      return;
    }
  }
}

}  // namespace

absl::StatusOr<CompileRunResult> RunCompiler(const CompileRunOptions& options) {
  SandboxOptions sandbox_options = MakeSandboxOptions(options);
  // The shell opens it for its "</dev/null".
  ASSAY_ASSIGN_OR_RETURN(UniqueFd empty, MemoryFile(""));
  sandbox_options.files.push_back({empty.get(), "/dev/null", 0444});
  std::vector<UniqueFd> contents;
  for (const auto& [path, bytes] : options.files) {
    ASSAY_ASSIGN_OR_RETURN(UniqueFd fd, MemoryFile(bytes));
    sandbox_options.files.push_back({fd.get(), absl::StrCat(kSourceFolder, "/", path), 0444});
    contents.push_back(std::move(fd));
  }
  Capture log{UniqueFd(), limits::kCompilerOutputBytesMax, "", false, true};
  Capture artifact{UniqueFd(), options.artifact_bytes_max, "", false, true};
  ASSAY_ASSIGN_OR_RETURN(UniqueFd log_writer, log.Open());
  ASSAY_ASSIGN_OR_RETURN(UniqueFd artifact_writer, artifact.Open());
  sandbox_options.descriptors = {{log_writer.get(), 1}, {log_writer.get(), 2}};
  if (options.want_artifact) {
    sandbox_options.descriptors.push_back({artifact_writer.get(), kArtifactDescriptor});
  }
  const absl::Time deadline = absl::Now() + options.timeout;
  ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<Sandbox> sandbox, Sandbox::Start(sandbox_options));
  log_writer.Reset();
  artifact_writer.Reset();

  CompileRunResult result;
  Collect(*sandbox, deadline, &log, &artifact, &result.timed_out);
  if (result.timed_out || log.over || artifact.over) sandbox->Kill();
  absl::StatusOr<SandboxExit> exit = sandbox->Wait(kReapMax);
  if (!exit.ok()) {
    // bubblewrap says why on standard error, which is in the log.
    return absl::UnavailableError(
        absl::StrCat(std::string(exit.status().message()), ": ", log.bytes.substr(0, 500)));
  }
  result.exit = *exit;
  result.log = std::move(log.bytes);
  result.artifact = std::move(artifact.bytes);
  result.log_flood = log.over;
  result.artifact_too_large = artifact.over;
  return result;
}

}  // namespace assay
