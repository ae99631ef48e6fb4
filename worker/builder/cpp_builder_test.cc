#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/test_matchers.h"
#include "gtest/gtest.h"
#include "worker/builder/build_cache.h"
#include "worker/builder/builder.h"
#include "worker/builder/compile_options.h"
#include "worker/builder/diagnostics.h"
#include "worker/sandbox/cgroup_home.h"

namespace assay {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kPrelude[] =
    "#include <cstdint>\n"
    "extern \"C\" void vector_add(const float* a, const float* b, float* c, int64_t n);\n";
constexpr char kInvoke[] =
    "extern \"C\" void assay_invoke(void* const* t, const int64_t* x) {\n"
    "  vector_add((const float*)t[0], (const float*)t[1], (float*)t[2], x[0]);\n}\n";
constexpr char kGood[] =
    "extern \"C\" void vector_add(const float* a, const float* b, float* c, int64_t n) {\n"
    "  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];\n}\n";

BuildRequest Request(const std::string& source) {
  BuildRequest request;
  request.files = {{"kernel.cc", source}};
  request.sources = {"kernel.cc"};
  request.prelude = kPrelude;
  request.invoke_source = kInvoke;
  return request;
}

class CppBuilderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (access("/usr/bin/bwrap", X_OK) != 0) GTEST_SKIP() << "bubblewrap is not installed";
    ASSERT_EQ(chmod(directory_.path().c_str(), 0755), 0);
  }

  CppBuilderOptions Options() {
    CppBuilderOptions options;
    options.cache_directory = directory_.path() + "/cache";
    return options;
  }

  std::unique_ptr<Builder> Make(const CppBuilderOptions& options) {
    absl::StatusOr<std::unique_ptr<Builder>> builder = MakeCppBuilder(options);
    EXPECT_OK(builder);
    return builder.ok() ? *std::move(builder) : nullptr;
  }

  BuildResult Build(const BuildRequest& request) { return BuildWith(Options(), request); }

  BuildResult BuildWith(const CppBuilderOptions& options, const BuildRequest& request) {
    std::unique_ptr<Builder> builder = Make(options);
    if (builder == nullptr) return BuildResult();
    absl::StatusOr<BuildResult> result = builder->Build(request);
    EXPECT_OK(result);
    return result.ok() ? *std::move(result) : BuildResult();
  }

  // A shell script that stands in for the compiler: it answers questions like the real one, and
  // does `body` when it should compile.
  std::string FakeCompiler(const std::string& body) {
    const std::string folder = directory_.path() + "/fake/bin";
    EXPECT_OK(CreateDirectories(folder));
    const std::string path = folder + "/g++";
    EXPECT_OK(WriteFileAtomically(
        path, absl::StrCat("#!/bin/sh\ncase \"$*\" in *--version*|*-###*) exec /usr/bin/g++ "
                           "\"$@\";; esac\n",
                           body, "\n")));
    EXPECT_EQ(chmod(path.c_str(), 0755), 0);
    return path;
  }

  TemporaryDirectory directory_ = *TemporaryDirectory::Create("builder-test");
};

TEST_F(CppBuilderTest, BuildsAndAnswersFromTheCache) {
  std::unique_ptr<Builder> builder = Make(Options());
  ASSERT_NE(builder, nullptr);
  EXPECT_THAT(builder->compiler(), HasSubstr("g++ "));
  ASSERT_OK_AND_ASSIGN(const BuildResult built, builder->Build(Request(kGood)));
  ASSERT_TRUE(built.ok) << built.log;
  EXPECT_FALSE(built.from_cache);
  GTEST_LOG_(INFO) << builder->compiler() << " took " << absl::FormatDuration(built.duration);
  ASSERT_OK_AND_ASSIGN(const std::string bytes,
                       ReadFile(built.artifact_path, limits::kArtifactBytesMax));
  EXPECT_EQ(Sha256Hex(bytes), built.artifact_digest);
  ASSERT_OK_AND_ASSIGN(const BuildResult again, builder->Build(Request(kGood)));
  EXPECT_TRUE(again.from_cache);
  EXPECT_EQ(again.artifact_digest, built.artifact_digest);
  GTEST_LOG_(INFO) << "from the cache " << absl::FormatDuration(again.duration);

  // A damaged artifact is not used.
  ASSERT_OK(WriteFileAtomically(built.artifact_path, "\177ELF damaged"));
  ASSERT_OK_AND_ASSIGN(const BuildResult rebuilt, builder->Build(Request(kGood)));
  EXPECT_FALSE(rebuilt.from_cache);
  EXPECT_EQ(rebuilt.artifact_digest, built.artifact_digest) << "builds repeat byte for byte";
}

TEST_F(CppBuilderTest, EverythingThatMattersChangesTheKey) {
  std::unique_ptr<Builder> builder = Make(Options());
  ASSERT_NE(builder, nullptr);
  const BuildRequest base = Request(kGood);
  ASSERT_OK_AND_ASSIGN(const BuildResult first, builder->Build(base));
  std::vector<BuildRequest> others(5, base);
  others[0].options = {"-funroll-loops"};
  others[1].macros = {{"BLOCK", 4}};
  others[2].files.push_back({"more.h", "// unused"});
  others[3].prelude += "// a comment\n";
  others[4].files[0].second += "// a comment\n";
  for (const BuildRequest& other : others) {
    ASSERT_OK_AND_ASSIGN(const BuildResult result, builder->Build(other));
    ASSERT_TRUE(result.ok) << result.log;
    EXPECT_FALSE(result.from_cache);
    EXPECT_NE(result.artifact_path, first.artifact_path);
  }
}

TEST_F(CppBuilderTest, HeadersMacrosAndSeveralSourcesWork) {
  BuildRequest request;
  request.files = {{"kernel.cc",
                    "#include \"inc/step.h\"\n"
                    "extern \"C\" void vector_add(const float* a, const float* b, "
                    "float* c, int64_t n) {\n"
                    "  for (int64_t i = 0; i < n; i += BLOCK) step(a, b, c, i);\n}\n"},
                   {"inc/step.h", "void step(const float*, const float*, float*, long);\n"},
                   {"sub/step.cc",
                    "#include \"inc/step.h\"\n#include <immintrin.h>\n"
                    "void step(const float* a, const float* b, float* c, long i) "
                    "{ c[i] = a[i] + b[i]; }\n"}};
  request.sources = {"kernel.cc", "sub/step.cc"};
  request.prelude = kPrelude;
  request.invoke_source = kInvoke;
  request.macros = {{"BLOCK", 1}};
  const BuildResult result = Build(request);
  EXPECT_TRUE(result.ok) << result.log;
}

TEST_F(CppBuilderTest, FailuresAreClassified) {
  const std::string good = kGood;
  struct Case {
    const char* name;
    std::string source;
    const char* reason;
    const char* text;  // in the log
  };
  const Case cases[] = {
      {"syntax", "int x = ;\n", "COMPILE_FAILED", "kernel.cc:1:9: error: "},
      {"wrong prototype", "extern \"C\" void vector_add(const float* a, float* c, int64_t n) {}\n",
       "WRONG_PROTOTYPE", "conflicting declaration"},
      {"wrong return type",
       "extern \"C\" int vector_add(const float* a, const float* b, float* c, int64_t n) "
       "{ return 0; }\n",
       "WRONG_PROTOTYPE", "vector_add"},
      {"static", "static void vector_add(const float*, const float*, float*, int64_t) {}\n",
       "WRONG_PROTOTYPE", "vector_add"},
      {"missing entry", "int other;\n", "ENTRY_NOT_FOUND", "undefined reference"},
      {"other undefined", good + "void gone(); void f() { gone(); }\n", "COMPILE_FAILED",
       "undefined reference"},
      {"second entry", good + "extern \"C\" void assay_invoke(void* const*, const int64_t*) {}\n",
       "RESERVED_NAME", "multiple definition"},
      {"second entry in assembler", good + "asm(\".globl assay_invoke\\nassay_invoke: ret\");\n",
       "RESERVED_NAME", "multiple definition"},
      {"the builder's own file", good + "#include \".assay/invoke.cc\"\n", "RESERVED_NAME",
       "multiple definition"},
      {"host file", "#include \"/etc/passwd\"\n", "INCLUDE_FORBIDDEN", "No such file"},
      {"host file by macro", "#define F </etc/shadow>\n#include F\n", "INCLUDE_FORBIDDEN",
       "No such file"},
      {"host file upwards", "#include \"../../../etc/passwd\"\n", "INCLUDE_FORBIDDEN",
       "No such file"},
      {"process", "#include \"/proc/self/environ\"\n", "INCLUDE_FORBIDDEN", "No such file"},
      {"incbin", good + "asm(\".incbin \\\"/etc/passwd\\\"\");\n", "INCLUDE_FORBIDDEN",
       "/etc/passwd"},
      {"assembler include", good + "asm(\".include \\\"/etc/passwd\\\"\");\n", "INCLUDE_FORBIDDEN",
       "/etc/passwd"},
      {"missing header", "#include \"missing.h\"\n", "COMPILE_FAILED", "No such file"},
      {"device", "#include \"/dev/random\"\n", "INCLUDE_FORBIDDEN", "No such file"},
      {"dependency", "#pragma GCC dependency \"/etc/shadow\"\n" + good, "COMPILE_FAILED",
       "No such file"},
      {"own folder", "#include \".assay/../../etc/passwd\"\n", "INCLUDE_FORBIDDEN", "No such file"},
      {"include itself", "#include \"kernel.cc\"\n", "COMPILER_LIMIT", "nested"},
      {"endless template",
       "template <int k> struct D { static constexpr int v = D<k + 1>::v; };\nint x = D<0>::v;\n",
       "COMPILER_LIMIT", "template instantiation depth"},
      {"endless constant",
       "constexpr long f() { long s = 0; for (long i = 0; i >= 0; ++i) s ^= i; return s; }\n"
       "constexpr long k = f();\n",
       "COMPILER_LIMIT", "exceeds limit"},
      {"assembler", good + "asm(\"no such instruction\");\n", "COMPILE_FAILED", "Error: no such"},
      {"machine words", "#error No space left on device\n", "COMPILE_FAILED", "No space left"},
      {"big fill", good + "asm(\".data\\n.fill 400000000\");\n", "COMPILE_FILE_SIZE", ""},
      {"big artifact", good + "asm(\".data\\n.fill 100000000\");\n", "ARTIFACT_TOO_LARGE", ""},
  };
  std::unique_ptr<Builder> builder = Make(Options());
  ASSERT_NE(builder, nullptr);
  for (const Case& test : cases) {
    SCOPED_TRACE(test.name);
    ASSERT_OK_AND_ASSIGN(const BuildResult result, builder->Build(Request(test.source)));
    EXPECT_FALSE(result.ok);
    EXPECT_EQ(result.reason, test.reason) << result.log;
    EXPECT_THAT(result.log, HasSubstr(test.text));
    EXPECT_THAT(result.log, Not(HasSubstr("root:")));
    EXPECT_EQ(result.message.empty(), result.reason == "COMPILE_FAILED");
    EXPECT_FALSE(result.from_cache);
  }
}

TEST_F(CppBuilderTest, WhatIsExpectedIsSaid) {
  const std::string prototype =
      "extern \"C\" void vector_add(const float* a, const float* b, float* c, int64_t n);";
  EXPECT_THAT(Build(Request("int other;\n")).message, HasSubstr(prototype));
  EXPECT_THAT(Build(Request("extern \"C\" int vector_add(const float*) { return 0; }\n")).message,
              HasSubstr(prototype));
}

TEST_F(CppBuilderTest, AMissingLibraryIsTheWorkersAndIsNamed) {
  BuildRequest request = Request(kGood);
  request.libraries = {"openblas"};
  CppBuilderOptions options = Options();
  options.library_root = directory_.path();
  std::unique_ptr<Builder> builder = Make(options);
  ASSERT_NE(builder, nullptr);
  const absl::Status status = builder->Build(request).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("libopenblas-dev")));
  EXPECT_EQ(GetReason(status), kLibraryNotInstalled);
}

TEST_F(CppBuilderTest, DiagnosticsPointAtTheSource) {
  const BuildResult result = Build(Request("\nint f() {\n  return nothing;\n}\n"));
  ASSERT_FALSE(result.diagnostics.empty());
  const auto error = std::find_if(
      result.diagnostics.begin(), result.diagnostics.end(),
      [](const BuildDiagnostic& diagnostic) { return diagnostic.severity == kSeverityError; });
  ASSERT_NE(error, result.diagnostics.end());
  EXPECT_EQ(error->file, "kernel.cc");
  EXPECT_EQ(error->line, 3);
  EXPECT_EQ(error->column, 10);
  EXPECT_THAT(error->message, HasSubstr("nothing"));
}

TEST_F(CppBuilderTest, BombsMeetTheirLimits) {
  CppBuilderOptions options = Options();
  options.timeout = absl::Milliseconds(700);
  // Every specialisation is a new one; no limit of the compiler's own stops it soon.
  const BuildResult slow = BuildWith(
      options, Request("template <int A, int B> struct S { static constexpr long v = "
                       "S<A - 1, B>::v + S<A - 1, B + (1 << A)>::v; };\n"
                       "template <int B> struct S<0, B> { static constexpr long v = B; };\n"
                       "long x = S<24, 0>::v;\n"));
  EXPECT_EQ(slow.reason, "COMPILE_TIMEOUT") << slow.log;
  EXPECT_THAT(slow.message, HasSubstr("0.7 s"));

  options = Options();
  std::string flood;
  for (int i = 0; i < 40; ++i) flood += "#warning " + std::string(32000, 'w') + "\n";
  const BuildResult flooded = BuildWith(options, Request(flood));
  EXPECT_EQ(flooded.reason, "COMPILE_OUTPUT_FLOOD");
  EXPECT_THAT(flooded.message, HasSubstr("1 MiB"));

  if (FindCgroupHome().memory_path.empty()) GTEST_SKIP() << FindCgroupHome().memory_note;
  options.memory_bytes_max = 96 << 20;
  std::string macros = "#define M0 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1\n";
  for (int i = 1; i < 8; ++i) {
    macros += absl::StrCat("#define M", i, " ");
    for (int j = 0; j < 8; ++j) macros += absl::StrCat("M", i - 1, j < 7 ? " + " : "\n");
  }
  const BuildResult fat = BuildWith(options, Request(macros + "int x[] = {M7};\n"));
  EXPECT_EQ(fat.reason, "COMPILE_MEMORY") << fat.log;
  EXPECT_THAT(fat.message, HasSubstr("96 MiB"));
}

TEST_F(CppBuilderTest, OptionsAndNamesComeFromAllowLists) {
  for (const char* option : {"-O2", "-funroll-loops", "-mprefer-vector-width=256", "-fopenmp-simd",
                             "--param=max-unroll-times=8", "-falign-loops=32"}) {
    EXPECT_TRUE(IsOptionAllowed(option)) << option;
  }
  for (const char* option : {"-Ofast",
                             "-ffast-math",
                             "-funsafe-math-optimizations",
                             "-fplugin=x.so",
                             "@file",
                             "-o/tmp/x",
                             "-include",
                             "-I/etc",
                             "-Wl,-z,x",
                             "-B/tmp",
                             "-specs=x",
                             "-fopenmp",
                             "-march=x",
                             "-ffp-contract=fast",
                             "-falign-loops=",
                             "-falign-loops=32,x",
                             "-O3 -Ofast",
                             "",
                             "--param=max-unroll-times=1e9",
                             "-fdump-tree-all",
                             "-save-temps",
                             "-x",
                             "-flto"}) {
    EXPECT_FALSE(IsOptionAllowed(option)) << option;
  }
  for (const char* path : {"a.cc", "dir/a-b_c.h", "A1.cpp"}) {
    EXPECT_TRUE(IsSourcePathAllowed(path)) << path;
  }
  for (const char* path : {"", "/a.cc", "../a.cc", "a/../b.cc", "-o", "a/-x", ".assay/prelude.h",
                           "a b.cc", "a\n.cc", "@a", "a//b", "a/"}) {
    EXPECT_FALSE(IsSourcePathAllowed(path)) << path;
  }
  BuildRequest request = Request(kGood);
  request.options = {"-Ofast"};
  const BuildResult refused = Build(request);
  EXPECT_EQ(refused.reason, "OPTION_NOT_ALLOWED");
  EXPECT_THAT(refused.message, HasSubstr("-Ofast"));
  request = Request(kGood);
  request.libraries = {"/tmp/evil"};
  EXPECT_EQ(Build(request).reason, "OPTION_NOT_ALLOWED");
  request = Request(kGood);
  request.macros = {{"A(x) x\n", 1}};
  EXPECT_EQ(Build(request).reason, "OPTION_NOT_ALLOWED");
}

TEST_F(CppBuilderTest, ASickMachineIsNeverACompileError) {
  struct Case {
    const char* name;
    std::string body;
    const char* text;
  };
  const Case cases[] = {
      {"disk full",
       "echo 'kernel.cc:2:1: fatal error: error writing to /tmp/a.s: No space left on device' >&2\n"
       "exit 1",
       "No space left on device"},
      {"disk full, no place", "echo 'as: /tmp/a.o: No space left on device' >&2; exit 1",
       "No space left on device"},
      {"killed", "kill -9 $$; while :; do :; done", ""},
      {"killed inside",
       "echo 'g++: fatal error: Killed signal terminated program cc1plus' >&2; exit 1", "Killed"},
      {"cannot fork", "echo 'g++: fatal error: cannot execute cc1plus: vfork' >&2; exit 1",
       "vfork"},
      {"silent", "exit 1", ""},
      {"no artifact", "exit 0", ""},
      {"not an object", "echo text >/tmp/artifact", ""},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.name);
    CppBuilderOptions options = Options();
    options.compiler = FakeCompiler(test.body);
    options.timeout = absl::Seconds(2);
    std::unique_ptr<Builder> builder = Make(options);
    ASSERT_NE(builder, nullptr);
    const absl::StatusOr<BuildResult> result = builder->Build(Request(kGood));
    ASSERT_FALSE(result.ok()) << result->reason << "\n" << result->log;
    EXPECT_THAT(result.status(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr(test.text)));
  }
  EXPECT_TRUE(std::filesystem::is_empty(Options().cache_directory)) << "nothing is cached";
}

TEST_F(CppBuilderTest, AMissingCompilerIsTheMachinesFault) {
  CppBuilderOptions options = Options();
  options.compiler = "/usr/bin/no-such-compiler";
  EXPECT_THAT(MakeCppBuilder(options), StatusIs(absl::StatusCode::kUnavailable));
  // One that disappears later.
  options.compiler = FakeCompiler("exit 1");
  std::unique_ptr<Builder> builder = Make(options);
  ASSERT_NE(builder, nullptr);
  ASSERT_EQ(unlink(options.compiler.c_str()), 0);
  EXPECT_THAT(builder->Build(Request(kGood)), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(CppBuilderTest, ALinkInPlaceOfTheArtifactIsNotFollowedHere) {
  CppBuilderOptions options = Options();
  const std::string secret = directory_.path() + "/secret";
  ASSERT_OK(WriteFileAtomically(secret, "\177ELF secret of the host"));
  options.compiler = FakeCompiler(absl::StrCat("ln -s ", secret, " /tmp/artifact"));
  std::unique_ptr<Builder> builder = Make(options);
  ASSERT_NE(builder, nullptr);
  // Only bytes that exist inside can come out, and there the file does not exist.
  EXPECT_FALSE(builder->Build(Request(kGood)).ok());
}

// What a compiler could leave in place of a file: the way out is `cat` of one path, behind the
// walls.
TEST_F(CppBuilderTest, WhateverLiesInPlaceOfTheArtifactNothingOfTheHostComesOut) {
  const struct {
    const char* name;
    const char* body;
  } rows[] = {
      {"link to a file of the host", "ln -s /etc/passwd /tmp/artifact"},
      {"link to itself", "ln -s /tmp/artifact /tmp/artifact"},
      {"link to the sources", "ln -s /src/kernel.cc /tmp/artifact"},
      {"folder", "mkdir /tmp/artifact"},
      {"pipe", "mkfifo /tmp/artifact"},
      {"hard link to the toolchain", "ln /usr/bin/g++ /tmp/artifact"},
      {"hard link to the sources", "ln /src/kernel.cc /tmp/artifact"},
  };
  CppBuilderOptions options = Options();
  options.timeout = absl::Seconds(5);
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    options.compiler = FakeCompiler(row.body);
    std::unique_ptr<Builder> builder = Make(options);
    ASSERT_NE(builder, nullptr);
    const absl::StatusOr<BuildResult> result = builder->Build(Request(kGood));
    EXPECT_FALSE(result.ok() && result->ok);
    EXPECT_THAT(result.ok() ? result->log : std::string(result.status().message()),
                Not(HasSubstr("root:")));
  }
  EXPECT_TRUE(std::filesystem::is_empty(Options().cache_directory)) << "nothing is cached";
}

// A folder whose files are called like what a toolchain looks for.
TEST_F(CppBuilderTest, APoisonedFolderIsNotLookedAt) {
  BuildRequest request =
      Request(std::string("#include <cstddef>\n#include <immintrin.h>\n") + kGood);
  const char* poison[] = {"cstddef",    "immintrin.h", "as",    "ld",
                          "cc1plus",    "collect2",    "specs", "liblto_plugin.so",
                          "crtbegin.o", "libc.so.6"};
  for (const char* name : poison) request.files.push_back({name, "#error poisoned\n"});
  const BuildResult result = Build(request);
  EXPECT_TRUE(result.ok) << result.log;
}

TEST_F(CppBuilderTest, TheClockOfTheBuildIsNotSeen) {
  const BuildResult result = Build(
      Request(std::string(kGood) +
              "extern const char kWhen[] = __DATE__ \" \" __TIME__ \" | \" __TIMESTAMP__;\n"));
  ASSERT_TRUE(result.ok) << result.log;
  ASSERT_OK_AND_ASSIGN(const std::string bytes,
                       ReadFile(result.artifact_path, limits::kArtifactBytesMax));
  EXPECT_THAT(bytes, HasSubstr("Jan  1 1970 00:00:00 | Thu Jan  1 00:00:00 1970"));
}

TEST_F(CppBuilderTest, NulAndBytesThatAreNotTextEndInADiagnostic) {
  for (const std::string& source :
       {std::string("int \0x = ;\n", 11), std::string("int x\xff\xfe = ;\n"),
        std::string("\xef\xbb\xbfint x = ;\n"), std::string(4096, '(')}) {
    const BuildResult result = Build(Request(source));
    EXPECT_FALSE(result.ok);
    EXPECT_EQ(result.reason, "COMPILE_FAILED") << result.log.substr(0, 500);
  }
}

TEST_F(CppBuilderTest, ProcessesBeyondTheLimitHaveTheirReason) {
  if (FindCgroupHome().pids_path.empty()) GTEST_SKIP() << FindCgroupHome().pids_note;
  CppBuilderOptions options = Options();
  options.compiler = FakeCompiler("f() { f & f; }; f");
  options.timeout = absl::Seconds(5);
  std::unique_ptr<Builder> builder = Make(options);
  ASSERT_NE(builder, nullptr);
  ASSERT_OK_AND_ASSIGN(const BuildResult result, builder->Build(Request(kGood)));
  EXPECT_EQ(result.reason, "COMPILE_PROCESSES") << result.log.substr(0, 500);
}

TEST(BuildCacheTest, TheOldestEntriesGoFirst) {
  TemporaryDirectory directory = *TemporaryDirectory::Create("cache-test");
  ASSERT_OK_AND_ASSIGN(const BuildCache cache, BuildCache::Open(directory.path(), 1000));
  ASSERT_OK(cache.Store("one", std::string(300, '1'), ""));
  ASSERT_OK(cache.Store("two", std::string(300, '2'), ""));
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    std::filesystem::last_write_time(
        entry.path(), std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  }
  ASSERT_TRUE(cache.Find("one").has_value());  // and is now the younger of the two
  ASSERT_OK(cache.Store("three", std::string(300, '3'), "log"));
  EXPECT_TRUE(cache.Find("one").has_value());
  EXPECT_FALSE(cache.Find("two").has_value());
  ASSERT_TRUE(cache.Find("three").has_value());
  EXPECT_EQ(cache.Find("three")->log, "log");
}

TEST(DiagnosticsTest, ReadsWhatCompilersWrite) {
  struct Case {
    const char* line;
    int severity;
    const char* file;
    int number;
    int column;
    const char* message;
  };
  const Case cases[] = {
      {"a.cc:1:2: error: bad", kSeverityError, "a.cc", 1, 2, "bad"},
      {"a.cc:7:1: fatal error: x.h: No such file or directory", kSeverityError, "a.cc", 7, 1,
       "x.h: No such file or directory"},
      {"d/a.h:3:4: warning: odd [-Wodd]", kSeverityWarning, "d/a.h", 3, 4, "odd [-Wodd]"},
      {"a.cc:3: note: see", kSeverityNote, "a.cc", 3, 0, "see"},
      {"{standard input}:12: Error: no such instruction", kSeverityError, "{standard input}", 12, 0,
       "no such instruction"},
      {"/usr/bin/ld: k.cc:(.text+0x5): undefined reference to `g'", kSeverityError, "k.cc", 0, 0,
       "undefined reference to `g'"},
      {"k.cc:(.text+0x5): undefined reference to `g'", kSeverityError, "k.cc", 0, 0,
       "undefined reference to `g'"},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.line);
    const std::vector<BuildDiagnostic> parsed = ParseDiagnostics(test.line);
    ASSERT_EQ(parsed.size(), 1u);
    EXPECT_EQ(parsed[0].severity, test.severity);
    EXPECT_EQ(parsed[0].file, test.file);
    EXPECT_EQ(parsed[0].line, test.number);
    EXPECT_EQ(parsed[0].column, test.column);
    EXPECT_EQ(parsed[0].message, test.message);
  }
  for (const char* line : {"", "In file included from a.cc:1:", "collect2: error: ld returned 1",
                           "a.cc: In function 'f':", "a.cc:x:1: error: no", "::::"}) {
    EXPECT_TRUE(ParseDiagnostics(line).empty()) << line;
  }
  std::string many;
  for (int i = 0; i < 100; ++i) many += "a.cc:1:1: warning: w\n";
  many += "a.cc:2:1: error: e\n";
  const std::vector<BuildDiagnostic> capped = ParseDiagnostics(many);
  ASSERT_EQ(capped.size(), limits::kDiagnosticsMax);
  EXPECT_EQ(capped[0].severity, kSeverityError);
}

}  // namespace
}  // namespace assay
