#include "worker/builder/compile_failure.h"

#include <signal.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

constexpr char kPrelude[] =
    "#include <cstdint>\n"
    "extern \"C\" void vector_add(const float* a, const float* b, float* c, int64_t n);\n";
constexpr char kError[] = "kernel.cc:1:1: error: expected ';'\n";

class CompileFailureTest : public ::testing::Test {
 protected:
  absl::StatusOr<CompileFailure> Judge(const CompileRunResult& run) {
    questions_ = 0;
    const std::vector<BuildDiagnostic> diagnostics = ParseDiagnostics(run.log);
    return JudgeFailure(
        run, diagnostics, limits_,
        [this] {
          ++questions_;
          return machine_;
        },
        [&] { return ClassifyFailure(diagnostics, kPrelude); });
  }

  CompileLimits limits_;
  absl::Status machine_;
  int questions_ = 0;
};

TEST_F(CompileFailureTest, EveryLimitHasItsReasonAndSize) {
  const struct {
    const char* reason;
    const char* size;
    void (*hit)(CompileRunResult*);
  } rows[] = {
      {"COMPILE_MEMORY", "2048 MiB", [](CompileRunResult* run) { run->exit.memory_limit = true; }},
      {"COMPILE_MEMORY", "2048 MiB",
       [](CompileRunResult* run) { run->log = "cc1plus: out of memory allocating 65536 bytes"; }},
      {"COMPILE_PROCESSES", "64 processes",
       [](CompileRunResult* run) { run->exit.processes_limit = true; }},
      {"COMPILE_TIMEOUT", "120 s", [](CompileRunResult* run) { run->timed_out = true; }},
      {"COMPILE_CPU", "125 s", [](CompileRunResult* run) { run->exit.signal = SIGXCPU; }},
      {"COMPILE_CPU", "125 s",
       [](CompileRunResult* run) {
         run->log =
             "g++: internal compiler error: CPU time limit exceeded signal terminated program "
             "cc1plus\nPlease submit a full bug report.\nSee <file:///README> for instructions.\n";
       }},
      {"COMPILE_OUTPUT_FLOOD", "1 MiB", [](CompileRunResult* run) { run->log_flood = true; }},
      {"COMPILE_FILE_SIZE", "128 MiB", [](CompileRunResult* run) { run->exit.signal = SIGXFSZ; }},
      {"COMPILE_FILE_SIZE", "128 MiB",
       [](CompileRunResult* run) {
         run->log =
             "collect2: fatal error: ld terminated with signal 25 [File size limit "
             "exceeded]\ncompilation terminated.\n";
       }},
      {"ARTIFACT_TOO_LARGE", "64 MiB",
       [](CompileRunResult* run) { run->artifact_too_large = true; }},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.reason);
    CompileRunResult run;
    run.exit.code = 1;
    row.hit(&run);
    ASSERT_OK_AND_ASSIGN(const CompileFailure failure, Judge(run));
    EXPECT_EQ(failure.reason, row.reason);
    EXPECT_THAT(failure.message, HasSubstr(row.size));
  }
}

// OOM-killed cc1plus is exit code 1 of g++, with words that anyone can write.
TEST_F(CompileFailureTest, WhatTheKernelCountedComesBeforeAllElse) {
  CompileRunResult run;
  run.exit.code = 1;
  run.log = absl::StrCat(kError,
                         "g++: fatal error: Killed signal terminated program cc1plus\n"
                         "compilation terminated.\n");
  run.timed_out = run.log_flood = run.artifact_too_large = true;
  run.exit.memory_limit = run.exit.processes_limit = true;
  ASSERT_OK_AND_ASSIGN(const CompileFailure failure, Judge(run));
  EXPECT_EQ(failure.reason, "COMPILE_MEMORY");
  run.exit.memory_limit = false;
  ASSERT_OK_AND_ASSIGN(const CompileFailure processes, Judge(run));
  EXPECT_EQ(processes.reason, "COMPILE_PROCESSES");
}

TEST_F(CompileFailureTest, WordsOfASourceAreNoLimit) {
  constexpr const char* kKilled = "g++: fatal error: Killed signal terminated program cc1plus\n";
  constexpr const char* kLarge =
      "g++: internal compiler error: File size limit exceeded signal terminated program as\n";
  const std::string logs[] = {
      // Errors of the source, whatever they say.
      "k.cc:1:2: error: #error out of memory allocating 65536 bytes\n",
      absl::StrCat(kKilled, kError),
      absl::StrCat(kError, kLarge),
      // Printed by the assembler or a pragma before a failure that no line explains.
      absl::StrCat(kKilled, "collect2: error: ld returned 1 exit status\n"),
      absl::StrCat(kLarge, "collect2: error: ld returned 1 exit status\n"),
      "k.cc: note: g++: fatal error: Killed signal terminated program cc1plus\n",
  };
  for (const std::string& log : logs) {
    SCOPED_TRACE(log);
    CompileRunResult run;
    run.exit.code = 1;
    run.log = log;
    ASSERT_OK_AND_ASSIGN(const CompileFailure failure, Judge(run));
    EXPECT_EQ(failure.reason, "COMPILE_FAILED");
  }
}

TEST_F(CompileFailureTest, ADriversLastWordsSayWhatEndedItsTool) {
  CompileRunResult run;
  run.exit.code = 1;
  run.log =
      "k.cc:1:2: warning: odd\ng++: fatal error: Killed signal terminated program cc1plus\n"
      "compilation terminated.\n";
  EXPECT_THAT(Judge(run), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("killed")));
  EXPECT_EQ(questions_, 1);
}

// Even when a diagnostic points at the sources.
TEST_F(CompileFailureTest, AMachineWithoutMemoryIsNeverACompileError) {
  CompileRunResult run;
  run.log = kError;
  run.exit.code = 1;
  ASSERT_OK_AND_ASSIGN(const CompileFailure healthy, Judge(run));
  EXPECT_EQ(healthy.reason, "COMPILE_FAILED");
  run.exit.machine_oom = true;
  EXPECT_THAT(Judge(run), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("out of memory")));
  run.timed_out = true;
  EXPECT_THAT(Judge(run), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("out of memory")));
}

TEST_F(CompileFailureTest, TheMachineIsAskedWhereTheSourcesDoNotExplainIt) {
  machine_ = absl::UnavailableError("cannot compile");
  CompileRunResult run;
  run.log = kError;
  EXPECT_OK(Judge(run));
  EXPECT_EQ(questions_, 0);
  run.log = "collect2: error: ld returned 1 exit status\n";
  EXPECT_THAT(Judge(run), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("cannot compile")));
  run.log = "kernel.cc:1:1: fatal error: error writing to /tmp/x: No space left on device\n";
  EXPECT_THAT(Judge(run), StatusIs(absl::StatusCode::kUnavailable));
  run = CompileRunResult();
  run.timed_out = true;
  EXPECT_THAT(Judge(run), StatusIs(absl::StatusCode::kUnavailable));
  // A healthy machine that killed the compiler is to blame all the same.
  machine_ = absl::OkStatus();
  run = CompileRunResult();
  run.exit.code = 128 + 9;
  EXPECT_THAT(Judge(run), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("killed")));
}

TEST_F(CompileFailureTest, DiagnosticsAreCalledByTheirCause) {
  const struct {
    const char* log;
    const char* reason;
    const char* message;
  } rows[] = {
      {kError, "COMPILE_FAILED", ""},
      {"k.cc:1:10: fatal error: missing.h: No such file or directory", "COMPILE_FAILED", ""},
      {"k.cc:1:10: fatal error: /etc/passwd: No such file or directory", "INCLUDE_FORBIDDEN",
       "k.cc:1:10: /etc/passwd"},
      {"k.cc:1:10: fatal error: ../../etc/passwd: No such file or directory", "INCLUDE_FORBIDDEN",
       "nothing else of the machine"},
      {"k.cc:1:10: fatal error: a/../../b.h: No such file or directory", "INCLUDE_FORBIDDEN", ""},
      {"k.cc:1:10: fatal error: a/../b.h: No such file or directory", "COMPILE_FAILED", ""},
      {"sub/k.cc:1:10: fatal error: ../b.h: No such file or directory", "COMPILE_FAILED", ""},
      {"sub/k.cc:1:10: fatal error: ../../b.h: No such file or directory", "INCLUDE_FORBIDDEN", ""},
      {"{standard input}:4: Error: file not found: /etc/passwd", "INCLUDE_FORBIDDEN",
       "/etc/passwd"},
      {"{standard input}:4: Error: file not found: table.bin", "COMPILE_FAILED", ""},
      {"{standard input}:4: Error: can't open /etc/shadow for reading: No such file or directory",
       "INCLUDE_FORBIDDEN", "/etc/shadow"},
      {"k.cc:1:2: error: #error /etc/passwd: No such file or directory", "COMPILE_FAILED", ""},
      {"k.cc:1:57: fatal error: template instantiation depth exceeds maximum of 900 (use "
       "'-ftemplate-depth=' to increase the maximum)",
       "COMPILER_LIMIT", "k.cc:1:57: template instantiation depth exceeds maximum of 900"},
      {"k.cc:1:3: error: 'constexpr' loop iteration count exceeds limit of 262144 (use "
       "'-fconstexpr-loop-limit=' to increase the limit)",
       "COMPILER_LIMIT", "262144"},
      {"k.cc:1:3: error: #include nested depth 200 exceeds maximum of 200", "COMPILER_LIMIT",
       "200"},
      {"k.cc:1:3: error: 'constexpr' call flows off the end of the function", "COMPILE_FAILED", ""},
      {"k.cc:(.text+0x5): undefined reference to `vector_add'", "ENTRY_NOT_FOUND",
       "expected: extern \"C\" void vector_add(const float* a, const float* b, float* c, int64_t "
       "n);"},
      {"k.cc:(.text+0x5): undefined reference to `vector'", "COMPILE_FAILED", ""},
      {"k.cc:3:17: error: conflicting declaration of 'void vector_add(int64_t)' with 'C' linkage",
       "WRONG_PROTOTYPE", "expected: extern \"C\" void vector_add(const float* a"},
      {"/usr/bin/ld: i.cc:(.text+0x0): multiple definition of `assay_invoke'; k.cc:(.text+0x0): "
       "first defined here",
       "RESERVED_NAME", "give yours another name"},
      {"/usr/bin/ld: b.cc:(.text+0x0): multiple definition of `helper'; a.cc:(.text+0x0): first "
       "defined here",
       "COMPILE_FAILED", ""},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.log);
    CompileRunResult run;
    run.exit.code = 1;
    run.log = row.log;
    ASSERT_OK_AND_ASSIGN(const CompileFailure failure, Judge(run));
    EXPECT_EQ(failure.reason, row.reason);
    EXPECT_THAT(failure.message, HasSubstr(row.message));
    EXPECT_EQ(failure.message.empty(), failure.reason == "COMPILE_FAILED");
  }
}

}  // namespace
}  // namespace assay
