#include "worker/guest/guest_session.h"
#include "worker/guest/process_accounting.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "assay/internal/v1/runner.pb.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/random.h"
#include "base/test_matchers.h"
#include "gtest/gtest.h"
#include "worker/builder/builder.h"
#include "worker/guest/guest_protocol.h"
#include "worker/sandbox/cgroup_home.h"
#include "worker/testing/guest_fixture.h"

namespace assay {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using Kind = internal::v1::GuestFault;

static_assert(static_cast<int>(GuestFaultKind::kLoadFailed) == Kind::LOAD_FAILED);
static_assert(static_cast<int>(GuestFaultKind::kSignal) == Kind::SIGNAL);
static_assert(static_cast<int>(GuestFaultKind::kExited) == Kind::EXITED);
static_assert(static_cast<int>(GuestFaultKind::kTimedOut) == Kind::TIMED_OUT);
static_assert(static_cast<int>(GuestFaultKind::kOutOfBounds) == Kind::OUT_OF_BOUNDS);
static_assert(static_cast<int>(GuestFaultKind::kInputWritten) == Kind::INPUT_WRITTEN);
static_assert(static_cast<int>(GuestFaultKind::kCanaryBroken) == Kind::CANARY_BROKEN);
static_assert(static_cast<int>(GuestFaultKind::kForbiddenSyscall) == Kind::FORBIDDEN_SYSCALL);
static_assert(static_cast<int>(GuestFaultKind::kMemoryLimit) == Kind::MEMORY_LIMIT);
static_assert(static_cast<int>(GuestFaultKind::kOutputFlood) == Kind::OUTPUT_FLOOD);
static_assert(static_cast<int>(GuestFaultKind::kHiddenWork) == Kind::HIDDEN_WORK);

// What the test's candidate does, by its first axis.
enum Mode : int64_t {
  kAdd,  // y[i] = x[i] + 1
  kReadAfterInput,
  kReadBeforeInput,
  kWriteAfterOutput,
  kWriteBeforeOutput,  // into the slack: seen by the canary
  kWriteInput,
  kWriteFarBefore,
  kNull,
  kAbort,
  kExit,
  kExitNow,
  kLoop,
  kFork,
  kThread,
  kSocket,
  kOpen,
  kHandler,
  kExecMemory,
  kAllocate,
  kNewHuge,
  kFlood,
  kPrint,
  kStack,
  kDivide,
  kKillParent,
  kUnmaskable,
};

constexpr char kCandidate[] = R"(
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
static int deep(volatile char* p, int n) { volatile char b[4096]; b[0] = p[0]; return n ? deep(b, n - 1) + b[0] : 0; }
static void* idle(void*) { return nullptr; }
extern "C" void assay_invoke(void* const* tensors, const int64_t* axes) {
  volatile const float* x = (const float*)tensors[0];
  volatile float* y = (float*)tensors[1];
  const int64_t n = axes[1];
  switch (axes[0]) {
    case 0: for (int64_t i = 0; i < n; ++i) y[i] = x[i] + 1; break;
    case 1: y[0] = ((const char*)x)[(n * 4 + 63) / 64 * 64]; break;
    case 2: y[0] = ((const char*)x)[-4096]; break;
    case 3: ((volatile char*)y)[(n * 4 + 63) / 64 * 64] = 1; break;
    case 4: ((volatile char*)y)[-1] ^= 0x55; break;
    case 5: ((volatile float*)x)[3] = 1; break;
    case 6: ((volatile char*)y)[-8192] = 1; break;
    case 7: *(volatile int*)nullptr = 1; break;
    case 8: abort();
    case 9: exit(0);
    case 10: _exit(3);
    case 11: for (;;) y[0] = x[0];
    case 12: y[0] = fork(); break;
    case 13: { pthread_t t; y[0] = pthread_create(&t, nullptr, idle, nullptr); break; }
    case 14: y[0] = socket(AF_INET, SOCK_STREAM, 0); break;
    case 15: y[0] = open("/usr/bin/env", O_RDONLY); break;
    case 16: signal(SIGSEGV, SIG_IGN); break;
    case 17: y[0] = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED; break;
    case 18: for (;;) { void* p = malloc(1 << 20); if (p) memset(p, 1, 1 << 20); }
    case 19: y[0] = *new char[(size_t)1 << 46]; break;
    case 20: for (;;) puts("flood flood flood flood flood flood flood flood");
    case 21: printf("hello from the candidate\n"); y[0] = x[0] + 1; break;
    case 22: { volatile char c = 1; y[0] = deep(&c, 1 << 30); break; }
    case 23: { volatile int zero = 0; y[0] = n / zero; break; }
    case 24: y[0] = kill(1, 9); break;
    case 25: { sigset_t all; sigfillset(&all); sigprocmask(SIG_SETMASK, &all, 0); *(volatile int*)8 = 1; break; }
  }
}
)";

class GuestSessionTest : public GuestFixture {
 protected:
  static void SetUpTestSuite() {
    GuestFixture::SetUpTestSuite();
    if (builder_ != nullptr) candidate_ = Build("int unused;", kCandidate);
  }

  void SetUp() override {
    GuestFixture::SetUp();
    if (builder_ != nullptr) {
      ASSERT_FALSE(candidate_.empty());
    }
  }

  // A loaded session whose candidate does `mode` on x[n], y[n].
  std::unique_ptr<GuestSession> Loaded(Mode mode, int64_t n = 100,
                                       GuestOptions options = Options()) {
    return LoadedFrom(candidate_, mode, n, options);
  }

  // Calls once and expects the end.
  GuestEnd EndOf(Mode mode, int64_t n = 100, absl::Duration timeout = kCallMax) {
    std::unique_ptr<GuestSession> session = Loaded(mode, n);
    if (session == nullptr || session->ended().has_value())
      return GuestEnd{-1, "not loaded", "", 0, 0};
    EXPECT_FALSE(session->Call(GuestCache::kLeave, timeout).has_value());
    EXPECT_TRUE(session->ended().has_value());
    EXPECT_FALSE(session->Call(GuestCache::kLeave, timeout).has_value()) << "a second call";
    return session->ended().value_or(GuestEnd{-1, "not ended", "", 0, 0});
  }

  inline static std::string candidate_;
};

TEST_F(GuestSessionTest, EveryCallSeesFreshContent) {
  const uint64_t seed = SecureRandom64();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  Random random(seed);
  std::unique_ptr<GuestSession> session = Loaded(kAdd, 1000);
  ASSERT_NE(session, nullptr);
  for (int call = 0; call < 200; ++call) {
    for (float& value : Floats(*session, 0)) value = static_cast<float>(random.Below(1000));
    for (float& value : Floats(*session, 1)) value = -1;
    const auto cache = static_cast<GuestCache>(call % 3);
    const std::optional<CallTiming> timing = session->Call(cache, kCallMax);
    ASSERT_TRUE(timing.has_value()) << session->ended()->message;
    EXPECT_GT(timing->duration_ns, 0);
    EXPECT_GE(timing->context_switches, 0);
    for (size_t i = 0; i < 1000; ++i) {
      ASSERT_EQ(Floats(*session, 1)[i], Floats(*session, 0)[i] + 1) << "call " << call;
    }
  }
}

TEST_F(GuestSessionTest, TheHandshakeHoldsForTenThousandCalls) {
  GuestOptions options = Options();
  const CoresApart apart(&options);
  std::unique_ptr<GuestSession> session = Loaded(kAdd, 1, options);
  ASSERT_NE(session, nullptr);
  std::vector<double> durations;
  std::vector<double> outsides;
  const absl::Time start = absl::Now();
  for (int call = 0; call < 10'000; ++call) {
    Floats(*session, 0)[0] = static_cast<float>(call);
    const std::optional<CallTiming> timing = call % 2 == 0
                                                 ? session->CallEmpty(GuestCache::kLeave)
                                                 : session->Call(GuestCache::kLeave, kCallMax);
    ASSERT_TRUE(timing.has_value()) << session->ended()->message;
    if (call % 2 == 0) {
      durations.push_back(timing->duration_ns);
      if (timing->outside_ns.has_value()) outsides.push_back(*timing->outside_ns);
    } else {
      ASSERT_EQ(Floats(*session, 1)[0], static_cast<float>(call + 1));
    }
  }
  const double per_call_us = absl::ToDoubleMicroseconds(absl::Now() - start) / 10'000;
  const auto report = [](const char* name, std::vector<double>& values) {
    std::sort(values.begin(), values.end());
    const auto at = [&](double q) {
      return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
    };
    GTEST_LOG_(INFO) << name << " ns: p1 " << at(0.01) << " p50 " << at(0.5) << " p90 " << at(0.9)
                     << " p99 " << at(0.99) << " max " << values.back();
  };
  report("empty call", durations);
  if (!outsides.empty()) report("outside of the call", outsides);
  GTEST_LOG_(INFO) << "one call with everything around it: " << per_call_us << " us";
}

TEST_F(GuestSessionTest, TensorsEndAtTheGuardAndStartAligned) {
  for (const int64_t n : {1, 15, 16, 17, 1023, 1024, 1025, 100'000}) {
    std::unique_ptr<GuestSession> session = Loaded(kAdd, n);
    ASSERT_NE(session, nullptr);
    for (size_t i : {0, 1}) {
      const auto address = reinterpret_cast<uintptr_t>(session->Buffer(i).data());
      EXPECT_EQ(address % 64, 0u);
      EXPECT_EQ(session->Buffer(i).size(), static_cast<size_t>(n) * 4);
    }
    EXPECT_TRUE(session->Call(GuestCache::kWarm, kCallMax).has_value());
  }
}

TEST_F(GuestSessionTest, MisbehaviourIsNamed) {
  struct Case {
    Mode mode;
    int kind;
    const char* tensor;
    int64_t offset;
    const char* text;
  };
  // 100 floats are 400 bytes, 448 with the rounding; the slack before them is one page less that.
  const Case cases[] = {
      {kReadAfterInput, Kind::OUT_OF_BOUNDS, "x", 448, "read out of bounds of x"},
      {kReadBeforeInput, Kind::OUT_OF_BOUNDS, "x", -4096, "read out of bounds of x"},
      {kWriteAfterOutput, Kind::OUT_OF_BOUNDS, "y", 448, "write out of bounds of y"},
      {kWriteFarBefore, Kind::OUT_OF_BOUNDS, "y", -8192, "write out of bounds of y"},
      {kWriteBeforeOutput, Kind::CANARY_BROKEN, "y", -1, "beside the output y"},
      {kWriteInput, Kind::INPUT_WRITTEN, "x", 12, "write into the input x"},
      {kNull, Kind::SIGNAL, "", 0, "SIGSEGV"},
      {kStack, Kind::SIGNAL, "", 0, "SIGSEGV"},
      {kUnmaskable, Kind::SIGNAL, "", 0, "SIGSEGV"},
      {kAbort, Kind::SIGNAL, "", 0, "SIGABRT"},
      {kDivide, Kind::SIGNAL, "", 0, "SIGFPE"},
      {kExit, Kind::EXITED, "", 0, "code 0"},
      {kExitNow, Kind::EXITED, "", 0, "code 3"},
      {kFork, Kind::PROCESS_CREATION, "", 0, "clone"},
      {kThread, Kind::FORBIDDEN_SYSCALL, "", 0, "pthread_create"},
      {kSocket, Kind::FORBIDDEN_SYSCALL, "", 0, "socket"},
      {kOpen, Kind::FORBIDDEN_SYSCALL, "", 0, "openat"},
      {kHandler, Kind::FORBIDDEN_SYSCALL, "", 0, "rt_sigaction"},
      {kExecMemory, Kind::FORBIDDEN_SYSCALL, "", 0, "mmap"},
      {kKillParent, Kind::FORBIDDEN_SYSCALL, "", 0, "kill"},
      {kNewHuge, Kind::MEMORY_LIMIT, "", 0, "operator new"},
      {kFlood, Kind::OUTPUT_FLOOD, "", 0, "bytes of output"},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(absl::StrCat("mode ", static_cast<int64_t>(test.mode)));
    const GuestEnd end = EndOf(test.mode);
    EXPECT_EQ(end.kind, test.kind) << end.message;
    EXPECT_EQ(end.tensor, test.tensor);
    EXPECT_EQ(end.byte_offset, test.offset);
    EXPECT_THAT(end.message, HasSubstr(test.text));
  }
}

TEST_F(GuestSessionTest, AnEndlessLoopTimesOut) {
  EXPECT_EQ(EndOf(kLoop, 100, absl::Milliseconds(20)).kind, Kind::TIMED_OUT);
}

TEST_F(GuestSessionTest, AMemoryBombMeetsTheLimit) {
  if (FindCgroupHome().memory_path.empty()) GTEST_SKIP() << FindCgroupHome().memory_note;
  const GuestEnd end = EndOf(kAllocate);
  EXPECT_EQ(end.kind, Kind::MEMORY_LIMIT) << end.message;
}

TEST_F(GuestSessionTest, OutputIsCollected) {
  std::unique_ptr<GuestSession> session = Loaded(kPrint);
  ASSERT_NE(session, nullptr);
  ASSERT_TRUE(session->Call(GuestCache::kLeave, kCallMax).has_value());
  EXPECT_EQ(session->output(), "hello from the candidate\n");
}

TEST_F(GuestSessionTest, KilledByHandIsNotTheCandidatesFault) {
  std::unique_ptr<GuestSession> session = Loaded(kAdd);
  ASSERT_NE(session, nullptr);
  ASSERT_EQ(kill(session->pid(), SIGKILL), 0);
  EXPECT_FALSE(session->Call(GuestCache::kLeave, kCallMax).has_value());
  ASSERT_TRUE(session->ended().has_value());
  EXPECT_EQ(session->ended()->kind, Kind::KIND_UNSPECIFIED);
  EXPECT_EQ(session->ended()->signal, SIGKILL);
}

TEST_F(GuestSessionTest, NothingIsLeftAfterDestruction) {
  int pid = 0;
  {
    std::unique_ptr<GuestSession> session = Loaded(kAdd);
    ASSERT_NE(session, nullptr);
    pid = session->pid();
    ASSERT_EQ(kill(pid, 0), 0);
  }
  EXPECT_NE(kill(pid, 0), 0);
}

TEST_F(GuestSessionTest, StaticConstructorsRunBehindTheWallsToo) {
  struct Case {
    const char* body;
    int kind;
    const char* text;
  };
  const Case cases[] = {
      {"fork();", Kind::PROCESS_CREATION, "clone"},
      {"signal(SIGSEGV, SIG_IGN);", Kind::FORBIDDEN_SYSCALL, "rt_sigaction"},
      {"open(\"/tmp/x\", O_CREAT | O_WRONLY, 0600);", Kind::FORBIDDEN_SYSCALL, "openat"},
      {"_exit(0);", Kind::EXITED, "code 0"},
      {"_exit(137);", Kind::FORBIDDEN_SYSCALL, "codes of 128 and more"},
      {"exit(-1);", Kind::FORBIDDEN_SYSCALL, "exit_group"},
      {"abort();", Kind::SIGNAL, "SIGABRT"},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.body);
    const std::string artifact =
        Build(absl::StrCat("#include <fcntl.h>\n#include <signal.h>\n#include <stdlib.h>\n"
                           "#include <unistd.h>\nstruct S { S() { ",
                           test.body, " } } s;\n"),
              "extern \"C\" void assay_invoke(void* const*, const long*) {}\n");
    std::unique_ptr<GuestSession> session = LoadedFrom(artifact, 0);
    ASSERT_NE(session, nullptr);
    ASSERT_TRUE(session->ended().has_value());
    EXPECT_EQ(session->ended()->kind, test.kind) << session->ended()->message;
    EXPECT_THAT(session->ended()->message, HasSubstr(test.text));
  }
}

TEST_F(GuestSessionTest, BrokenArtifactsAreTheCandidatesFault) {
  TemporaryDirectory directory = *TemporaryDirectory::Create("guest-test");
  const std::string garbage = directory.path() + "/garbage.so";
  ASSERT_OK(WriteFileAtomically(garbage, "not an object"));
  const std::string empty =
      Build("int x;", "extern \"C\" void other(void* const*, const long*) {}\n");
  for (const std::string& artifact : {garbage, empty}) {
    std::unique_ptr<GuestSession> session = LoadedFrom(artifact, 0);
    ASSERT_NE(session, nullptr);
    ASSERT_TRUE(session->ended().has_value());
    EXPECT_EQ(session->ended()->kind, Kind::LOAD_FAILED) << session->ended()->message;
  }
}

TEST_F(GuestSessionTest, RunsWithoutASandboxWhenAllowed) {
  GuestOptions options = Options();
  options.allow_unsandboxed = true;
  std::unique_ptr<GuestSession> session = Loaded(kAdd, 10, options);
  ASSERT_NE(session, nullptr);
  Floats(*session, 0)[9] = 41;
  ASSERT_TRUE(session->Call(GuestCache::kLeave, kCallMax).has_value()) << session->output();
  EXPECT_EQ(Floats(*session, 1)[9], 42);
  EXPECT_THAT(session->missing_walls(), Contains("bubblewrap"));
  EXPECT_THAT(session->walls(), Contains("seccomp"));
  std::unique_ptr<GuestSession> forking = Loaded(kFork, 10, options);
  EXPECT_FALSE(forking->Call(GuestCache::kLeave, kCallMax).has_value());
  EXPECT_EQ(forking->ended()->kind, Kind::PROCESS_CREATION);
}

TEST_F(GuestSessionTest, SandboxedSessionsReportTheirWalls) {
  std::unique_ptr<GuestSession> session = Loaded(kAdd);
  ASSERT_NE(session, nullptr);
  EXPECT_THAT(session->walls(), Contains("bubblewrap"));
  EXPECT_THAT(session->missing_walls(), Not(Contains("bubblewrap")));
}

TEST_F(GuestSessionTest, AMissingGuestIsTheMachinesFault) {
  GuestOptions options = Options();
  options.guest_binary = "/no/such/assay-guest";
  EXPECT_THAT(GuestSession::Start(options), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(GuestSessionTest, AnOpenblasBaselineLoadsAndRuns) {
  if (access("/usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblas.so", R_OK) != 0) {
    GTEST_SKIP() << "libopenblas-dev is not installed";
  }
  const std::string artifact = Build("int x;", R"(
#include <cblas.h>
#include <cstdint>
extern "C" void assay_invoke(void* const* tensors, const int64_t* axes) {
  const float* x = (const float*)tensors[0];
  const int n = 32;
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, x, n, x, n, 0, (float*)tensors[1], n);
}
)",
                                     {"openblas"});
  GuestOptions options = Options();
  options.libraries = {"openblas"};
  std::unique_ptr<GuestSession> session = LoadedFrom(artifact, 0, 1024, options);
  ASSERT_NE(session, nullptr);
  ASSERT_FALSE(session->ended().has_value()) << session->ended()->message;
  for (size_t i = 0; i < 32; ++i) Floats(*session, 0)[i * 33] = 2;
  ASSERT_TRUE(session->Call(GuestCache::kLeave, kCallMax).has_value()) << session->ended()->message;
  for (size_t i = 0; i < 1024; ++i) EXPECT_EQ(Floats(*session, 1)[i], i % 33 == 0 ? 4 : 0);
}

// What a constructor can open: the control first, then libraries and the toolchain.
TEST_F(GuestSessionTest, NothingButTheRuntimeCanBeLoadedByAConstructor) {
  const std::string artifact = Build("int x;", R"(
#include <cstdint>
#include <dlfcn.h>
#include <fcntl.h>
static float found[8];
__attribute__((constructor)) static void Look() {
  found[0] = dlopen("libm.so.6", RTLD_NOW) != nullptr;
  found[1] = dlopen("libopenblas.so.0", RTLD_NOW) != nullptr;
  found[2] = dlopen("/usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblas.so", RTLD_NOW) != nullptr;
  found[3] = dlopen("libblas.so.3", RTLD_NOW) != nullptr;
  found[4] = dlopen("libz.so.1", RTLD_NOW) != nullptr;
  found[5] = open("/usr/bin/env", O_RDONLY) >= 0;
  found[6] = open("/usr/include/math.h", O_RDONLY) >= 0;
  found[7] = open("/usr/share", O_RDONLY) >= 0;
}
extern "C" void assay_invoke(void* const* tensors, const int64_t* axes) {
  for (int i = 0; i < 8; ++i) ((float*)tensors[1])[i] = found[i];
}
)");
  std::unique_ptr<GuestSession> session = LoadedFrom(artifact, 0);
  ASSERT_NE(session, nullptr);
  ASSERT_FALSE(session->ended().has_value()) << session->ended()->message;
  ASSERT_TRUE(session->Call(GuestCache::kLeave, kCallMax).has_value()) << session->ended()->message;
  const std::span<float> found = Floats(*session, 1);
  EXPECT_EQ(found[0], 1);
  for (size_t i = 1; i < 8; ++i) EXPECT_EQ(found[i], 0) << i;
}

TEST_F(GuestSessionTest, StartIsMeasured) {
  std::vector<double> starts_ms;
  UniqueFd fd(open(candidate_.c_str(), O_RDONLY | O_CLOEXEC));
  for (int i = 0; i < 30; ++i) {
    const absl::Time start = absl::Now();
    ASSERT_OK_AND_ASSIGN(std::unique_ptr<GuestSession> session, GuestSession::Start(Options()));
    ASSERT_OK(session->Load(fd.get(), {{"x", 400, false}, {"y", 400, true}}, {kAdd, 100}));
    starts_ms.push_back(absl::ToDoubleMilliseconds(absl::Now() - start));
    ASSERT_FALSE(session->ended().has_value());
  }
  std::sort(starts_ms.begin(), starts_ms.end());
  GTEST_LOG_(INFO) << "start and load ms: min " << starts_ms.front() << " p50 " << starts_ms[15];
}

TEST(DeadlineTest, TimeWithoutACoreDoesNotCount) {
  EXPECT_EQ(DeadlineWithoutWaits(100, 110, 0), 110);
  EXPECT_EQ(DeadlineWithoutWaits(100, 110, 4), 114);
  EXPECT_EQ(DeadlineWithoutWaits(100, 110, 50), 120);  // at most twice as long
  EXPECT_EQ(DeadlineWithoutWaits(100, 110, -5), 110);  // nothing known
}

}  // namespace
}  // namespace assay
