// Builds and calls every candidate of tests/candidates/hostile and holds it to expectations.txt, as
// far as builder and guest alone decide it.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "assay/internal/v1/runner.pb.h"
#include "base/file.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "worker/builder/builder.h"
#include "worker/guest/guest_session.h"
#include "worker/sandbox/cgroup_home.h"
#include "worker/sandbox/sandbox.h"
#include "worker/sandbox/slots.h"

namespace assay {
namespace {

using Kind = internal::v1::GuestFault;
using ::testing::Contains;
using ::testing::IsEmpty;

// Every candidate there is a vector_add; with this n the output ends 36 bytes before its guard.
constexpr int64_t kN = 10007;
constexpr int kCalls = 3;

constexpr char kPrelude[] =
    "#include <cstdint>\n"
    "extern \"C\" void vector_add(const float* a, const float* b, float* c, int64_t n);\n";
constexpr char kInvoke[] =
    "extern \"C\" void assay_invoke(void* const* t, const int64_t* x) {\n"
    "  vector_add((const float*)t[0], (const float*)t[1], (float*)t[2], x[0]);\n}\n";

struct Expectation {
  std::string path;
  std::string verdict;
  std::vector<std::string> reasons;
};

std::string ReasonOf(const GuestEnd& end) {
  if (end.kind == Kind::SIGNAL) return "CRASHED";
  return Kind::Kind_Name(static_cast<Kind::Kind>(end.kind));
}

// Verdicts that need the comparison with the reference.
bool EndsWell(const std::string& verdict) {
  return verdict == "PASSED" || verdict == "INCORRECT" || verdict == "GAMED" ||
         verdict == "NONDETERMINISTIC";
}

std::vector<Expectation> ReadExpectations(const std::string& folder) {
  std::vector<Expectation> all;
  const absl::StatusOr<std::string> text = ReadFile(folder + "/expectations.txt", 1 << 20);
  if (!text.ok()) return all;
  for (const absl::string_view line : absl::StrSplit(*text, '\n')) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.size() != 4 || words[0].rfind("hostile/", 0) != 0) continue;
    all.push_back({words[0], words[2], absl::StrSplit(words[3], ',')});
  }
  return all;
}

// "" when it ended well.
std::string RunGuest(const std::string& artifact, std::string* message) {
  GuestOptions options;
  const char* dir = std::getenv("ASSAY_BIN_DIR");
  options.guest_binary = absl::StrCat(dir == nullptr ? "bin" : dir, "/assay-guest");
  options.slot = ProcessSlots()->runner_first * kSlotsPerRunner;
  options.memory_bytes_max = 128 << 20;
  options.load_timeout = absl::Milliseconds(300);
  absl::StatusOr<std::unique_ptr<GuestSession>> session = GuestSession::Start(options);
  if (!session.ok()) return session.status().ToString();
  UniqueFd fd(open(artifact.c_str(), O_RDONLY | O_CLOEXEC));
  const absl::Status loaded = (*session)->Load(
      fd.get(), {{"a", kN * 4, false}, {"b", kN * 4, false}, {"c", kN * 4, true}}, {kN});
  if (!loaded.ok()) return loaded.ToString();
  for (int call = 0; call < kCalls && !(*session)->ended().has_value(); ++call) {
    (void)(*session)->Call(GuestCache::kLeave, absl::Milliseconds(500));
  }
  if (!(*session)->ended().has_value()) return "";
  *message = (*session)->ended()->message;
  return ReasonOf(*(*session)->ended());
}

bool IsOurs(uid_t user) {
  const SlotShare& share = *ProcessSlots();
  const int slot = static_cast<int>(user) - kSandboxUidFirst;
  return slot == share.builder || (slot >= share.runner_first * kSlotsPerRunner &&
                                   slot < (share.runner_last + 1) * kSlotsPerRunner);
}

// What sandboxes of this process have left: processes, groups, files. Without root they have no
// user of their own, and only groups can be told from others'.
std::vector<std::string> Remains() {
  std::vector<std::string> remains;
  std::error_code ignored;
  const CgroupHome& home = FindCgroupHome();
  for (const std::string& path : {home.memory_path, home.pids_path}) {
    if (path.empty()) continue;
    for (const auto& entry : std::filesystem::directory_iterator(path, ignored)) {
      if (entry.path().filename().string().starts_with(absl::StrCat(getpid(), "-"))) {
        remains.push_back(entry.path().string());
      }
    }
  }
  if (geteuid() != 0) return remains;
  for (const char* folder : {"/proc", "/tmp", "/dev/shm", "."}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
      struct stat info;
      if (lstat(entry.path().c_str(), &info) == 0 && IsOurs(info.st_uid)) {
        remains.push_back(entry.path().string());
      }
    }
  }
  return remains;
}

TEST(HostileCorpusTest, EveryCandidateMeetsItsWall) {
  if (access("/usr/bin/bwrap", X_OK) != 0) GTEST_SKIP() << "bubblewrap is not installed";
  const char* source_dir = std::getenv("ASSAY_SOURCE_DIR");
  const std::string folder =
      absl::StrCat(source_dir == nullptr ? "." : source_dir, "/tests/candidates");
  const std::vector<Expectation> expectations = ReadExpectations(folder);
  if (expectations.empty()) GTEST_SKIP() << "no corpus in " << folder;
  TemporaryDirectory directory = *TemporaryDirectory::Create("hostile-test");
  CppBuilderOptions options;
  options.cache_directory = directory.path();
  options.memory_bytes_max = 384 << 20;
  options.timeout = absl::Seconds(20);
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Builder> builder, MakeCppBuilder(options));
  for (const Expectation& expectation : expectations) {
    SCOPED_TRACE(expectation.path);
    ASSERT_OK_AND_ASSIGN(const std::string source,
                         ReadFile(absl::StrCat(folder, "/", expectation.path), 1 << 20));
    BuildRequest request;
    request.files = {{"kernel.cc", source}};
    request.sources = {"kernel.cc"};
    request.prelude = kPrelude;
    request.invoke_source = kInvoke;
    const absl::Time start = absl::Now();
    ASSERT_OK_AND_ASSIGN(const BuildResult built, builder->Build(request));
    std::string message = built.log.substr(0, 400);
    const std::string reason = built.ok ? RunGuest(built.artifact_path, &message) : built.reason;
    if (absl::Now() - start > absl::Seconds(2)) {
      GTEST_LOG_(INFO) << expectation.path << " took " << absl::FormatDuration(absl::Now() - start);
    }
    if (EndsWell(expectation.verdict)) {
      EXPECT_EQ(reason, "") << message;
    } else {
      EXPECT_NE(std::find(expectation.reasons.begin(), expectation.reasons.end(), reason),
                expectation.reasons.end())
          << "got " << reason << ": " << message;
    }
    EXPECT_THAT(Remains(), IsEmpty());
  }
}

// The control: what is looked for is found.
TEST(HostileCorpusTest, WhatIsLeftIsSeen) {
  if (geteuid() != 0) GTEST_SKIP() << "without root a sandbox has no user of its own";
  const auto user = static_cast<uid_t>(kSandboxUidFirst + ProcessSlots()->builder);
  ASSERT_THAT(Remains(), IsEmpty());
  const pid_t left = fork();
  ASSERT_GE(left, 0);
  if (left == 0) {
    if (syscall(SYS_setresuid, user, user, user) != 0) _exit(1);
    (void)execl("/bin/sleep", "sleep", "60", nullptr);
    _exit(1);
  }
  const std::string entry = absl::StrCat("/proc/", left);
  std::vector<std::string> remains;
  for (int attempt = 0; remains.empty() && attempt < 100'000; ++attempt) remains = Remains();
  EXPECT_THAT(remains, Contains(entry));
  kill(left, SIGKILL);
  EXPECT_EQ(waitpid(left, nullptr, 0), left);
  EXPECT_THAT(Remains(), IsEmpty());
}

}  // namespace
}  // namespace assay
