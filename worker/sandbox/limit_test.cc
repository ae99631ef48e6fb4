#include "worker/sandbox/limit.h"

#include <signal.h>

#include <string>

#include "gtest/gtest.h"

namespace assay {
namespace {

// In the order in which they are believed.
const struct {
  const char* name;
  SandboxLimit limit;
  void (*show)(LimitEvidence*);
} kSigns[] = {
    {"memory", SandboxLimit::kMemory, [](LimitEvidence* e) { e->exit.memory_limit = true; }},
    {"processes", SandboxLimit::kProcesses,
     [](LimitEvidence* e) { e->exit.processes_limit = true; }},
    {"time", SandboxLimit::kTime, [](LimitEvidence* e) { e->timed_out = true; }},
    {"cpu", SandboxLimit::kCpu, [](LimitEvidence* e) { e->exit.signal = SIGXCPU; }},
    {"output", SandboxLimit::kOutput, [](LimitEvidence* e) { e->output_over = true; }},
    {"file size", SandboxLimit::kFileSize, [](LimitEvidence* e) { e->inner_signal = SIGXFSZ; }},
    {"artifact size", SandboxLimit::kArtifactSize,
     [](LimitEvidence* e) { e->artifact_over = true; }},
};
constexpr unsigned kSignCount = std::size(kSigns);

// Every combination of signs, under every exit that says nothing by itself.
TEST(LimitTest, TheFirstSignDecides) {
  const struct {
    int code;
    int signal;
    bool machine_oom;
  } exits[] = {{0, 0, false},
               {1, 0, false},
               {128 + SIGKILL, SIGKILL, false},
               {128 + SIGSEGV, SIGSEGV, true}};
  for (const auto& exit : exits) {
    for (unsigned mask = 0; mask < 1u << kSignCount; ++mask) {
      LimitEvidence evidence;
      evidence.exit.code = exit.code;
      evidence.exit.signal = exit.signal;
      evidence.exit.machine_oom = exit.machine_oom;
      SandboxLimit want = SandboxLimit::kNone;
      std::string names = "exit code " + std::to_string(exit.code);
      for (unsigned i = 0; i < kSignCount; ++i) {
        if ((mask & 1u << i) == 0) continue;
        kSigns[i].show(&evidence);
        if (want == SandboxLimit::kNone) want = kSigns[i].limit;
        names += std::string(", ") + kSigns[i].name;
      }
      EXPECT_EQ(ClassifyLimit(evidence), want) << names;
    }
  }
}

TEST(LimitTest, SignalsOfTheCommandAndOfWhatItStartedCountAlike) {
  for (const auto& [signal_number, limit] :
       {std::pair{SIGXCPU, SandboxLimit::kCpu}, std::pair{SIGXFSZ, SandboxLimit::kFileSize},
        std::pair{SIGKILL, SandboxLimit::kNone}, std::pair{SIGABRT, SandboxLimit::kNone}}) {
    LimitEvidence own;
    own.exit.signal = signal_number;
    EXPECT_EQ(ClassifyLimit(own), limit) << signal_number;
    LimitEvidence inner;
    inner.inner_signal = signal_number;
    EXPECT_EQ(ClassifyLimit(inner), limit) << signal_number;
  }
}

// A code is what a program likes to return.
TEST(LimitTest, AnExitCodeProvesNothing) {
  for (int code = 0; code < 256; ++code) {
    LimitEvidence evidence;
    evidence.exit.code = code;
    EXPECT_EQ(ClassifyLimit(evidence), SandboxLimit::kNone) << code;
  }
}

}  // namespace
}  // namespace assay
