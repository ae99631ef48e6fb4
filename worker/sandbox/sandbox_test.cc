#include "worker/sandbox/sandbox.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/test_matchers.h"
#include "gtest/gtest.h"
#include "worker/guest/guest_protocol.h"
#include "worker/sandbox/cgroup.h"
#include "worker/sandbox/cgroup_home.h"
#include "worker/sandbox/program_files.h"
#include "worker/sandbox/required_walls.h"
#include "worker/sandbox/text.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr absl::Duration kLong = absl::Seconds(60);

std::string BinDir() {
  const char* dir = std::getenv("ASSAY_BIN_DIR");
  return dir == nullptr ? "bin" : dir;
}

// Reads a process's file; several strings separated by NUL come back as they are.
std::string ReadProc(int pid, const std::string& name) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/", name));
  return std::string(std::istreambuf_iterator<char>(file), {});
}

class SandboxTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (access("/usr/bin/bwrap", X_OK) != 0) GTEST_SKIP() << "bubblewrap is not installed";
    guest_.Reset(open((BinDir() + "/assay-guest").c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_TRUE(guest_.valid()) << "no assay-guest in " << BinDir();
  }

  // Runs a script to its end; `out` gets both streams.
  absl::StatusOr<SandboxExit> RunShell(const std::string& script, SandboxOptions options,
                                       std::string* out, absl::Duration timeout = kLong) {
    options.arguments = {"/bin/sh", "-c", script};
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return absl::InternalError("pipe2");
    UniqueFd reader(ends[0]);
    UniqueFd writer(ends[1]);
    options.descriptors.push_back({writer.get(), 1});
    options.descriptors.push_back({writer.get(), 2});
    absl::StatusOr<std::unique_ptr<Sandbox>> sandbox = Sandbox::Start(options);
    if (!sandbox.ok()) return sandbox.status();
    writer.Reset();
    absl::StatusOr<SandboxExit> exit = (*sandbox)->Wait(timeout);
    if (!exit.ok()) return exit;
    absl::StatusOr<std::string> text = ReadToEnd(reader.get(), 1 << 20);
    if (!text.ok()) return text.status();
    *out = *text;
    return exit;
  }

  SandboxOptions Probe(std::vector<std::string> what, SyscallFilter filter) {
    SandboxOptions options;
    options.arguments = {"/assay-guest", kGuestProbeFlag};
    options.arguments.insert(options.arguments.end(), what.begin(), what.end());
    options.files = {{guest_.get(), "/assay-guest", 0555}};
    options.filter = filter;
    return options;
  }

  // 0 when every probe was refused, else one plus the index of one that was not.
  int RunProbe(const SandboxOptions& options) {
    absl::StatusOr<std::unique_ptr<Sandbox>> sandbox = Sandbox::Start(options);
    EXPECT_OK(sandbox);
    if (!sandbox.ok()) return -1;
    const absl::StatusOr<SandboxExit> exit = (*sandbox)->Wait(kLong);
    EXPECT_OK(exit);
    return exit.ok() ? exit->code : -1;
  }

  UniqueFd guest_;
};

SandboxOptions Compile() {
  SandboxOptions options;
  options.filter = SyscallFilter::kCompile;
  return options;
}

TEST_F(SandboxTest, RunsACommandAndReportsItsExitCode) {
  std::string out;
  ASSERT_OK_AND_ASSIGN(const SandboxExit exit, RunShell("echo hello; exit 7", Compile(), &out));
  EXPECT_EQ(exit.code, 7);
  EXPECT_EQ(exit.signal, 0);
  EXPECT_EQ(out, "hello\n");
}

TEST_F(SandboxTest, ReportsTheSignalThatKilledTheCommand) {
  // A signal from inside does not reach the first process of a namespace; a limit of the kernel's
  // does.
  SandboxOptions options = Compile();
  options.file_bytes_max = 4096;
  options.tmpfs_bytes_max = 1 << 20;
  std::string out;
  ASSERT_OK_AND_ASSIGN(
      const SandboxExit exit,
      RunShell("sh -c 'while :; do echo 0123456789; done >/tmp/x'; exit $?", options, &out));
  EXPECT_EQ(exit.code, 128 + SIGXFSZ);
}

TEST_F(SandboxTest, NoVariableOfTheWorkerIsVisible) {
  ASSERT_EQ(setenv("ASSAY_PLANTED", "planted-secret-7731", 1), 0);
  SandboxOptions options = Compile();
  options.environment = {"ONLY=this"};
  std::string out;
  // There is no /proc inside; the shell prints its own variables.
  ASSERT_OK_AND_ASSIGN(const SandboxExit exit,
                       RunShell("set; export -p; test -e /proc && echo has-proc", options, &out));
  EXPECT_EQ(exit.code, 1);
  EXPECT_THAT(out, Not(HasSubstr("planted-secret-7731")));
  EXPECT_THAT(out, HasSubstr("ONLY='this'"));
  EXPECT_THAT(out, Not(HasSubstr("has-proc")));

  // What /proc inside would show, seen from here: bubblewrap's own process and the command's.
  options.arguments = {"/bin/sh", "-c", "read line"};
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  options.descriptors = {{reader.get(), 0}};
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Sandbox> sandbox, Sandbox::Start(options));
  ASSERT_OK_AND_ASSIGN(const int command, sandbox->CommandPid());
  EXPECT_THAT(ReadProc(sandbox->pid(), "environ"), Not(HasSubstr("planted-secret-7731")));
  EXPECT_THAT(ReadProc(command, "environ"), Not(HasSubstr("planted-secret-7731")));
  EXPECT_THAT(ReadProc(command, "environ"), Not(HasSubstr("PATH=")));
  unsetenv("ASSAY_PLANTED");
}

TEST_F(SandboxTest, FilesOfTheHostAreNotThere) {
  TemporaryDirectory directory = *TemporaryDirectory::Create("sandbox-test");
  ASSERT_EQ(chmod(directory.path().c_str(), 0755), 0);
  const std::string open_file = directory.path() + "/open";
  ASSERT_OK(WriteFileAtomically(open_file, "x"));
  EXPECT_EQ(
      RunProbe(Probe({"read:/etc/passwd", "read:/proc/self/environ", "read:/proc/1/environ",
                      "read:/sys/kernel", "read:/dev/zero", "read:/home", "read:/root", "read:/run",
                      "read:/var", "read:" + open_file, "descriptors", "environment"},
                     SyscallFilter::kNone)),
      0);
  // The control: what is bound in can be read.
  SandboxOptions bound = Probe({"read:/x"}, SyscallFilter::kNone);
  bound.read_only_binds = {{open_file, "/x"}};
  EXPECT_EQ(RunProbe(bound), 1);
}

TEST_F(SandboxTest, WithoutTheToolchainOnlyWhatAProgramIsLinkedWithIsThere) {
  ASSERT_OK_AND_ASSIGN(const auto binds, ProgramFiles(BinDir() + "/assay-guest", {}));
  const std::vector<std::string> what = {
      "read:/usr/bin", "read:/usr/include", "read:/usr/share", "read:/usr/lib/gcc",
      "read:/bin",     "read:/sbin",        "write:/usr/lib/x"};
  SandboxOptions options = Probe(what, SyscallFilter::kNone);
  options.toolchain = false;
  options.read_only_binds = binds;
  EXPECT_EQ(RunProbe(options), 0);
  // The controls: what was bound in, and the same probe with the toolchain.
  ASSERT_FALSE(binds.empty());
  options.arguments = Probe({"read:" + binds[0].second}, SyscallFilter::kNone).arguments;
  EXPECT_EQ(RunProbe(options), 1);
  EXPECT_EQ(RunProbe(Probe(what, SyscallFilter::kNone)), 1);
}

TEST_F(SandboxTest, AFileOfRootStaysClosed) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  TemporaryDirectory directory = *TemporaryDirectory::Create("sandbox-test");
  ASSERT_EQ(chmod(directory.path().c_str(), 0755), 0);
  const std::string path = directory.path() + "/secret";
  ASSERT_OK(WriteFileAtomically(path, "x"));
  SandboxOptions options = Probe({"read:/secret"}, SyscallFilter::kNone);
  options.read_only_binds = {{path, "/secret"}};
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  EXPECT_EQ(RunProbe(options), 0);
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  EXPECT_EQ(RunProbe(options), 1) << "the control: by mode alone it can be read";
}

TEST_F(SandboxTest, TheRootInsideCannotBeWritten) {
  std::string out;
  ASSERT_OK_AND_ASSIGN(
      const SandboxExit exit,
      RunShell("echo x >/x; echo x >/usr/x; mkdir /y; test -e /x -o -e /usr/x -o -e /y", Compile(),
               &out));
  EXPECT_EQ(exit.code, 1) << out;
}

TEST_F(SandboxTest, HasNoNetwork) {
  UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(listen(listener.get(), 4), 0);
  ASSERT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  const std::string connect_here = absl::StrCat("connect:", ntohs(address.sin_port));
  EXPECT_EQ(RunProbe(Probe({connect_here}, SyscallFilter::kNone)), 0);
}

TEST_F(SandboxTest, NestedNamespacesAndDeniedCallsFail) {
  EXPECT_EQ(RunProbe(Probe({"userns", "core"}, SyscallFilter::kNone)), 0);
  EXPECT_EQ(RunProbe(Probe({"userns", "ptrace", "socket"}, SyscallFilter::kCompile)), 0);
  EXPECT_EQ(RunProbe(Probe({"userns", "ptrace", "socket"}, SyscallFilter::kGuest)), 0);
  // The control: without a filter those calls work.
  EXPECT_EQ(RunProbe(Probe({"userns", "ptrace"}, SyscallFilter::kNone)), 2);
  EXPECT_EQ(RunProbe(Probe({"socket"}, SyscallFilter::kNone)), 1);
}

TEST_F(SandboxTest, DescriptorsArriveAsListedAndNoOthers) {
  ASSERT_EQ(RunProbe(Probe({"descriptors"}, SyscallFilter::kNone)), 0);
  UniqueFd file(memfd_create("x", 0));
  ASSERT_OK(WriteAll(file.get(), "content"));
  SandboxOptions options = Compile();
  options.descriptors = {{file.get(), 9}};
  std::string out;
  ASSERT_OK_AND_ASSIGN(const SandboxExit exit,
                       RunShell("echo more >&9 && echo x >&8", options, &out));
  EXPECT_NE(exit.code, 0);
  char text[32] = {};
  EXPECT_EQ(pread(file.get(), text, sizeof(text), 0), 12);
  EXPECT_STREQ(text, "contentmore\n");
}

TEST_F(SandboxTest, AForkBombIsContainedAndLeavesNothing) {
  SandboxOptions options = Compile();
  options.processes_max = 16;
  std::string out;
  options.arguments = {"/bin/sh", "-c", "f() { f & f; }; f"};
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Sandbox> sandbox, Sandbox::Start(options));
  ASSERT_OK_AND_ASSIGN(const int command, sandbox->CommandPid());
  // Either it ends by itself when fork fails, or it is killed here; both leave nothing.
  if (!sandbox->Wait(absl::Milliseconds(300)).ok()) sandbox->Kill();
  EXPECT_OK(sandbox->Wait(kLong));
  EXPECT_NE(kill(command, 0), 0);
  const CgroupHome& home = FindCgroupHome();
  const std::string prefix = absl::StrCat(getpid(), "-");
  for (const std::string& path : {home.memory_path, home.pids_path}) {
    if (path.empty()) continue;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      EXPECT_FALSE(entry.path().filename().string().starts_with(prefix)) << entry.path();
    }
  }
}

TEST_F(SandboxTest, AProcessLimitHolds) {
  if (FindCgroupHome().pids_path.empty()) GTEST_SKIP() << FindCgroupHome().pids_note;
  SandboxOptions options = Probe({"forks:16"}, SyscallFilter::kCompile);
  options.processes_max = 8;
  EXPECT_EQ(RunProbe(options), 0);
  options.processes_max = 32;
  EXPECT_EQ(RunProbe(options), 1);
}

// As an init that reaps slowly leaves them when workers are killed again and again.
TEST_F(SandboxTest, ProcessesThatWereNotReapedDoNotCount) {
  if (geteuid() != 0) GTEST_SKIP() << "without root every sandbox has this process's user";
  SandboxOptions options = Probe({"forks:1"}, SyscallFilter::kCompile);
  options.processes_max = 8;
  const auto user = static_cast<uid_t>(kSandboxUidFirst + options.slot);
  std::vector<pid_t> zombies;
  for (int i = 0; i < 24; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) _exit(syscall(SYS_setresuid, user, user, user) == 0 ? 0 : 1);
    zombies.push_back(child);
  }
  for (const pid_t zombie : zombies) {
    siginfo_t ended;
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(zombie), &ended, WEXITED | WNOWAIT), 0);
    EXPECT_EQ(ended.si_status, 0);
  }
  EXPECT_EQ(RunProbe(options), 1) << "it starts, and may fork";
  for (const pid_t zombie : zombies) EXPECT_EQ(waitpid(zombie, nullptr, 0), zombie);
}

TEST_F(SandboxTest, AMemoryBombIsKilledByItsOwnLimit) {
  if (FindCgroupHome().memory_path.empty()) GTEST_SKIP() << FindCgroupHome().memory_note;
  SandboxOptions options = Probe({"memory:134217728"}, SyscallFilter::kCompile);
  options.memory_bytes_max = 32 << 20;
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Sandbox> sandbox, Sandbox::Start(options));
  ASSERT_OK_AND_ASSIGN(const SandboxExit exit, sandbox->Wait(kLong));
  EXPECT_TRUE(exit.memory_limit);
  EXPECT_FALSE(exit.machine_oom);
  EXPECT_GT(exit.peak_memory_bytes, 24 << 20);
  options.memory_bytes_max = 256 << 20;
  ASSERT_OK_AND_ASSIGN(sandbox, Sandbox::Start(options));
  ASSERT_OK_AND_ASSIGN(const SandboxExit fits, sandbox->Wait(kLong));
  EXPECT_FALSE(fits.memory_limit);
  EXPECT_EQ(fits.code, 1) << "the control: with enough memory it works";
}

TEST_F(SandboxTest, WaitTimesOutAndDestructionKills) {
  SandboxOptions options = Compile();
  options.arguments = {"/bin/sh", "-c", "while :; do :; done"};
  int command = 0;
  {
    ASSERT_OK_AND_ASSIGN(std::unique_ptr<Sandbox> sandbox, Sandbox::Start(options));
    ASSERT_OK_AND_ASSIGN(command, sandbox->CommandPid());
    EXPECT_THAT(sandbox->Wait(absl::Milliseconds(1)).status(),
                StatusIs(absl::StatusCode::kDeadlineExceeded));
    EXPECT_EQ(kill(command, 0), 0);
  }
  EXPECT_NE(kill(command, 0), 0);
}

TEST_F(SandboxTest, KillRightAfterTheStartEndsCleanly) {
  SandboxOptions options = Compile();
  options.arguments = {"/bin/sh", "-c", "while :; do :; done"};
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK_AND_ASSIGN(std::unique_ptr<Sandbox> sandbox, Sandbox::Start(options));
    sandbox->Kill();
    EXPECT_OK(sandbox->Wait(kLong));
  }
}

TEST_F(SandboxTest, ACommandThatCannotBeStartedIsTheMachinesFault) {
  SandboxOptions options = Compile();
  options.arguments = {"/no/such/program"};
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Sandbox> sandbox, Sandbox::Start(options));
  const absl::StatusOr<SandboxExit> exit = sandbox->Wait(kLong);
  if (exit.ok()) {
    EXPECT_NE(exit->code, 0);
  } else {
    EXPECT_THAT(exit.status(), StatusIs(absl::StatusCode::kUnavailable));
  }
}

TEST_F(SandboxTest, BadOptionsAreRefused) {
  SandboxOptions options = Compile();
  EXPECT_THAT(Sandbox::Start(options), StatusIs(absl::StatusCode::kInvalidArgument));
  options.arguments = {"/bin/true"};
  options.slot = kSandboxSlotsMax;
  EXPECT_THAT(Sandbox::Start(options), StatusIs(absl::StatusCode::kInvalidArgument));
  options.slot = 0;
  options.environment = {"no equals sign"};
  EXPECT_THAT(Sandbox::Start(options), StatusIs(absl::StatusCode::kInvalidArgument));
  options.environment = {};
  options.descriptors = {{1, 64}};
  EXPECT_THAT(Sandbox::Start(options), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(SandboxTest, ProbeWallsTriesEveryWallOnce) {
  const std::vector<WallProbe> walls = ProbeWalls();
  std::vector<std::string> names;
  for (const WallProbe& wall : walls) {
    names.push_back(wall.name);
    EXPECT_EQ(wall.note.empty(), wall.state == WallState::kStanding) << wall.name;
    if (!wall.note.empty()) GTEST_LOG_(INFO) << WallStateName(wall.state) << ": " << wall.note;
  }
  EXPECT_EQ(names, AllWalls());
  EXPECT_OK(CheckWalls(DefaultRequiredWalls(geteuid() == 0), walls));
  std::vector<std::string> groups;
  if (!FindCgroupHome().memory_path.empty()) groups.push_back(kWallCgroupMemory);
  if (!FindCgroupHome().pids_path.empty()) groups.push_back(kWallCgroupPids);
  EXPECT_OK(CheckWalls(groups, walls));
}

// Each probe has to be able to succeed: against a sandbox without its wall it does.
TEST_F(SandboxTest, ProbesSucceedWhereTheirWallIsMissing) {
  SandboxOptions options = Probe({}, SyscallFilter::kNone);
  options.tmpfs_bytes_max = 8 << 20;
  for (const char* what : {"write:/tmp/x", "fill:1048576", "keys", "ring", "socket", "ptrace",
                           "clone3", "signal:1", "memory:1048576", "forks:2"}) {
    options.arguments = {"/assay-guest", kGuestProbeFlag, what};
    EXPECT_EQ(RunProbe(options), 1) << what;
  }
}

TEST_F(SandboxTest, Clone3AnswersSoThatTheLibraryFallsBack) {
  for (const SyscallFilter filter : {SyscallFilter::kCompile, SyscallFilter::kGuest}) {
    EXPECT_EQ(RunProbe(Probe({"clone3"}, filter)), 0);
  }
  // Which it does: processes start.
  EXPECT_EQ(RunProbe(Probe({"forks:2"}, SyscallFilter::kCompile)), 1);
}

TEST_F(SandboxTest, TheTemporaryFolderIsSized) {
  SandboxOptions options = Probe({"fill:2097152"}, SyscallFilter::kCompile);
  options.tmpfs_bytes_max = 1 << 20;
  EXPECT_EQ(RunProbe(options), 0);
  options.tmpfs_bytes_max = 4 << 20;
  EXPECT_EQ(RunProbe(options), 1) << "the control: there is room";
  options.file_bytes_max = 1 << 20;
  EXPECT_EQ(RunProbe(options), 0);
}

// Empty files take no room of a tmpfs; what they take of the kernel counts as the sandbox's memory.
TEST_F(SandboxTest, FilesWithoutContentAreBoundedByMemory) {
  if (FindCgroupHome().memory_path.empty()) GTEST_SKIP() << FindCgroupHome().memory_note;
  SandboxOptions options = Compile();
  options.tmpfs_bytes_max = 1 << 20;
  options.memory_bytes_max = 16 << 20;
  std::string out;
  // The shell itself takes a few MiB at most; 16 MiB hold some ten thousand files.
  const absl::StatusOr<SandboxExit> exit = RunShell(
      "i=0; while [ $i -lt 200000 ]; do : >/tmp/$i || exit 3; i=$((i+1)); done", options, &out);
  ASSERT_OK(exit);
  EXPECT_TRUE(exit->memory_limit || exit->code == 3) << exit->code;
}

TEST_F(SandboxTest, NoPathOfTheHostIsInACommandLine) {
  TemporaryDirectory directory = *TemporaryDirectory::Create("sandbox-test");
  ASSERT_EQ(chmod(directory.path().c_str(), 0755), 0);
  SandboxOptions options = Compile();
  options.arguments = {"/bin/sh", "-c", "echo ready; read line"};
  options.read_only_binds = {{directory.path(), "/bound"}};
  int in[2];
  int out[2];
  ASSERT_EQ(pipe2(in, O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(out, O_CLOEXEC), 0);
  UniqueFd in_reader(in[0]), in_writer(in[1]), out_reader(out[0]), out_writer(out[1]);
  options.descriptors = {{in_reader.get(), 0}, {out_writer.get(), 1}};
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Sandbox> sandbox, Sandbox::Start(options));
  char byte;
  ASSERT_EQ(read(out_reader.get(), &byte, 1), 1);
  ASSERT_OK_AND_ASSIGN(const int command, sandbox->CommandPid());
  // The first process inside; bubblewrap's own, which has the path, is outside of its namespace.
  const std::string line = ReadProc(command, "cmdline");
  EXPECT_THAT(line, HasSubstr("echo ready"));
  EXPECT_THAT(line, Not(HasSubstr(directory.path())));
}

TEST_F(SandboxTest, ALimitOfCpuTimeSaysSo) {
  SandboxOptions options = Compile();
  options.cpu_seconds_max = 1;
  std::string out;
  ASSERT_OK_AND_ASSIGN(const SandboxExit exit,
                       RunShell("sh -c 'while :; do :; done'; exit $?", options, &out));
  EXPECT_EQ(exit.signal, SIGXCPU);
  EXPECT_FALSE(exit.memory_limit);
  EXPECT_FALSE(exit.processes_limit);
}

TEST_F(SandboxTest, ARefusedForkIsCounted) {
  if (FindCgroupHome().pids_path.empty()) GTEST_SKIP() << FindCgroupHome().pids_note;
  for (const bool refused : {false, true}) {
    SandboxOptions options = Probe({"forks:16"}, SyscallFilter::kCompile);
    options.processes_max = refused ? 8 : 32;
    ASSERT_OK_AND_ASSIGN(std::unique_ptr<Sandbox> sandbox, Sandbox::Start(options));
    ASSERT_OK_AND_ASSIGN(const SandboxExit exit, sandbox->Wait(kLong));
    EXPECT_EQ(exit.processes_limit, refused);
  }
}

// A child that has entered the group and waits.
pid_t StartIn(const std::string& group) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  const pid_t pid = fork();
  if (pid == 0) {
    const int procs = open((group + "/cgroup.procs").c_str(), O_WRONLY);
    const bool entered = write(procs, "0", 1) == 1 && write(ends[1], "x", 1) == 1;
    while (entered) pause();
    _exit(1);
  }
  close(ends[1]);
  char byte;
  if (read(ends[0], &byte, 1) != 1) kill(pid, SIGKILL);
  close(ends[0]);
  return pid;
}

TEST(SweepCgroupsTest, EndsWhatDeadProcessesLeftAndNothingElse) {
  const std::string home = FindCgroupHome().memory_path;
  if (home.empty()) GTEST_SKIP() << FindCgroupHome().memory_note;
  const pid_t gone = fork();
  if (gone == 0) _exit(0);
  ASSERT_EQ(waitpid(gone, nullptr, 0), gone);
  const std::string stale = absl::StrCat(home, "/", gone, "-1023-0");
  const std::string live = absl::StrCat(home, "/", getpid(), "-1023-0");
  ASSERT_EQ(mkdir(stale.c_str(), 0755), 0);
  ASSERT_EQ(mkdir(live.c_str(), 0755), 0);
  const pid_t left = StartIn(stale);
  const pid_t working = StartIn(live);
  SweepCgroups(home);
  int status = 0;
  ASSERT_EQ(waitpid(left, &status, 0), left);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  for (int attempt = 0; access(stale.c_str(), F_OK) == 0 && attempt < 1000; ++attempt) {
    SweepCgroups(home);
  }
  EXPECT_NE(access(stale.c_str(), F_OK), 0);
  EXPECT_EQ(waitpid(working, &status, WNOHANG), 0);
  kill(working, SIGKILL);
  waitpid(working, &status, 0);
  for (int attempt = 0; rmdir(live.c_str()) != 0 && attempt < 1000; ++attempt) {
  }
}

TEST(CleanTextTest, KeepsUtf8AndReplacesTheRest) {
  const std::pair<std::string, std::string> cases[] = {
      {"plain\n\ttext", "plain\n\ttext"},
      {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
      {"\x1b[31mred", "?[31mred"},
      {std::string("a\0b", 3), "a?b"},
      {"\xff\xfe", "??"},
      {"cut \xe2\x82", "cut ??"},
      {"\xc0\xaf", "??"},             // overlong
      {"\xed\xa0\x80", "???"},        // surrogate
      {"\xf4\x90\x80\x80", "????"}};  // beyond U+10FFFF
  for (const auto& [dirty, clean] : cases) EXPECT_EQ(CleanText(dirty), clean);
}

}  // namespace
}  // namespace assay
