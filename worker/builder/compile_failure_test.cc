#include "worker/builder/compile_failure.h"

#include <string>

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
      {"COMPILE_TIMEOUT", "120 s", [](CompileRunResult* run) { run->timed_out = true; }},
      {"COMPILE_OUTPUT_FLOOD", "1 MiB", [](CompileRunResult* run) { run->log_flood = true; }},
      {"ARTIFACT_TOO_LARGE", "64 MiB",
       [](CompileRunResult* run) { run->artifact_too_large = true; }},
      {"ARTIFACT_TOO_LARGE", "64 MiB",
       [](CompileRunResult* run) { run->log = "as: File size limit exceeded"; }},
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
