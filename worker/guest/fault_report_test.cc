#include "worker/guest/fault_report.h"

#include <signal.h>
#include <sys/syscall.h>

#include "assay/internal/v1/runner.pb.h"
#include "gmock/gmock.h"
#include "worker/guest/guest_protocol.h"

namespace assay {
namespace {

using Kind = internal::v1::GuestFault;
using ::testing::HasSubstr;

static_assert(static_cast<int>(GuestFaultKind::kProcessCreation) == Kind::PROCESS_CREATION);

// A guest whose handler recorded the system call `number`.
GuestEnd AfterSyscall(int number) {
  GuestFaultRecord record = {};
  record.syscall = number;
  record.kind.store(static_cast<uint32_t>(GuestFaultKind::kForbiddenSyscall));
  SandboxExit exit;
  exit.code = kGuestExitFault;
  return ExplainExit(exit, record, {});
}

TEST(FaultReportTest, AProcessIsToldFromOtherForbiddenCalls) {
  const struct {
    int number;
    int kind;
    const char* name;
  } rows[] = {
#if defined(__x86_64__)
    {SYS_fork, Kind::PROCESS_CREATION, "fork"},
    {SYS_vfork, Kind::PROCESS_CREATION, "vfork"},
#endif
    {SYS_clone, Kind::PROCESS_CREATION, "clone"},
    {SYS_clone3, Kind::PROCESS_CREATION, "clone3"},
    {SYS_execve, Kind::FORBIDDEN_SYSCALL, "execve"},
    {SYS_socket, Kind::FORBIDDEN_SYSCALL, "socket"},
    {SYS_openat, Kind::FORBIDDEN_SYSCALL, "hardware_concurrency"},
    {99999, Kind::FORBIDDEN_SYSCALL, "99999"},
  };
  for (const auto& row : rows) {
    const GuestEnd end = AfterSyscall(row.number);
    EXPECT_EQ(end.kind, row.kind) << row.name;
    EXPECT_THAT(end.message, HasSubstr(row.name));
  }
}

// Kind 0 is the infrastructure's, and never a verdict.
TEST(FaultReportTest, AMachineWithoutMemoryIsNotTheCandidatesFault) {
  SandboxExit exit;
  exit.signal = SIGKILL;
  exit.code = 128 + SIGKILL;
  exit.machine_oom = true;
  GuestEnd end = ExplainExit(exit, {}, {});
  EXPECT_EQ(end.kind, 0);
  EXPECT_THAT(end.message, HasSubstr("the machine ran out of memory"));

  // Nor when the candidate left a record before.
  GuestFaultRecord record = {};
  record.signal = SIGSEGV;
  record.kind.store(static_cast<uint32_t>(GuestFaultKind::kSignal));
  EXPECT_EQ(ExplainExit(exit, record, {}).kind, 0);

  // The neighbour: its own limit.
  exit.machine_oom = false;
  exit.memory_limit = true;
  EXPECT_EQ(ExplainExit(exit, {}, {}).kind, Kind::MEMORY_LIMIT);
}

TEST(FaultReportTest, EveryLimitIsToldFromAnOrdinaryEnd) {
  const struct {
    const char* name;
    int kind;
    void (*hit)(SandboxExit*);
  } rows[] = {
      {"memory", Kind::MEMORY_LIMIT, [](SandboxExit* exit) { exit->memory_limit = true; }},
      {"processes", Kind::PROCESS_CREATION,
       [](SandboxExit* exit) { exit->processes_limit = true; }},
      {"cpu", Kind::TIMED_OUT, [](SandboxExit* exit) { exit->signal = SIGXCPU; }},
      {"file size", Kind::OUTPUT_FLOOD, [](SandboxExit* exit) { exit->signal = SIGXFSZ; }},
      {"none", Kind::EXITED, [](SandboxExit*) {}},
      {"crash", Kind::SIGNAL, [](SandboxExit* exit) { exit->signal = SIGSEGV; }},
  };
  for (const auto& row : rows) {
    SandboxExit exit;
    row.hit(&exit);
    const GuestEnd end = ExplainExit(exit, {}, {});
    EXPECT_EQ(end.kind, row.kind) << row.name << ": " << end.message;
    EXPECT_FALSE(end.message.empty()) << row.name;
  }
}

}  // namespace
}  // namespace assay
