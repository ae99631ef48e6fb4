// The builder for C++: g++ in a sandbox.
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/digest.h"
#include "base/status.h"
#include "base/strings.h"
#include "worker/builder/build_cache.h"
#include "worker/builder/builder.h"
#include "worker/builder/cached_build.h"
#include "worker/builder/compile_failure.h"
#include "worker/builder/compile_options.h"
#include "worker/builder/compile_run.h"
#include "worker/builder/diagnostics.h"
#include "worker/sandbox/slots.h"
#include "worker/sandbox/text.h"

namespace assay {
namespace {

constexpr char kBuilderVersion[] = "cpp-builder-2";
constexpr char kPreludePath[] = ".assay/prelude.h";
constexpr char kInvokePath[] = ".assay/invoke.cc";
constexpr char kToolchainInside[] = "/toolchain";
constexpr absl::Duration kQuestionMax = absl::Seconds(30);

constexpr const char* kFixedFlags[] = {
    "-std=c++20", "-O3", "-march=native", "-ffp-contract=off", "-shared", "-fPIC",
    // Exported functions may still be inlined into each other, as in a program.
    "-fno-semantic-interposition", "-pipe", "-fdiagnostics-color=never",
    "-fno-diagnostics-show-caret", "-fmax-errors=50", "-iquote", ".", "-include", kPreludePath,
    // Of a file that was made for this build; SOURCE_DATE_EPOCH does not reach it.
    "-Wno-builtin-macro-redefined", "-D__TIMESTAMP__=\"Thu Jan  1 00:00:00 1970\""};

// What every compiler can build, in the same shape as a candidate.
BuildRequest CanaryRequest() {
  BuildRequest request;
  request.files = {{"canary.cc", "void canary(int* x) { *x += 1; }\n"}};
  request.sources = {"canary.cc"};
  request.prelude = "extern \"C\" void canary(int* x);\n";
  request.invoke_source =
      "extern \"C\" void assay_invoke(void* const* tensors, const long*) {\n"
      "  canary(static_cast<int*>(tensors[0]));\n}\n";
  return request;
}

// "g++ (Debian 12.2.0-14) 12.2.0" becomes "g++ 12.2.0 (Debian 12.2.0-14)".
std::string CompilerName(const std::string& first_line) {
  const size_t open = first_line.find(" (");
  const size_t close = first_line.rfind(") ");
  if (open == std::string::npos || close == std::string::npos || close < open) return first_line;
  return absl::StrCat(first_line.substr(0, open), " ", first_line.substr(close + 2),
                      first_line.substr(open, close + 1 - open));
}

class CppBuilder : public Builder {
 public:
  CppBuilder(CppBuilderOptions options, BuildCache cache, int slot)
      : options_(std::move(options)), cache_(std::move(cache)), slot_(slot) {}

  absl::Status Prepare();
  const std::string& compiler() const override { return compiler_; }
  absl::StatusOr<BuildResult> Build(const BuildRequest& request) override;

 private:
  CompileRunOptions RunOptions(std::vector<std::string> arguments) const;
  absl::StatusOr<std::string> Ask(std::vector<std::string> arguments) const;
  absl::StatusOr<CompileRunResult> Compile(const BuildRequest& request,
                                           const std::vector<std::string>& arguments) const;
  absl::Status CheckMachine(std::string_view log) const;
  std::vector<std::string> Arguments(const BuildRequest& request,
                                     const std::vector<std::string>& libraries) const;

  const CppBuilderOptions options_;
  const BuildCache cache_;
  const int slot_;
  std::string program_;  // as called inside
  std::vector<std::pair<std::string, std::string>> binds_;
  std::string compiler_;
  std::string native_;  // digest of what -march=native means here
};

absl::Status CppBuilder::Prepare() {
  program_ = options_.compiler;
  if (absl::StartsWith(program_, "/") && !absl::StartsWith(program_, "/usr/")) {
    const std::string folder = program_.substr(0, program_.rfind('/'));
    const std::string prefix = folder.substr(0, folder.rfind('/'));
    if (prefix.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("compiler ", program_, ": the folder above its own is the root"));
    }
    binds_ = {{prefix, kToolchainInside}};
    program_ = kToolchainInside + program_.substr(prefix.size());
  }
  ASSAY_ASSIGN_OR_RETURN(const std::string version, Ask({program_, "--version"}));
  compiler_ = CompilerName(version.substr(0, version.find('\n')));
  // Lists the exact flags, cache sizes included, without compiling.
  ASSAY_ASSIGN_OR_RETURN(const std::string native,
                         Ask({program_, "-march=native", "-###", "-E", "-x", "c++", "-"}));
  native_ = Sha256Hex(native);
  return absl::OkStatus();
}

CompileRunOptions CppBuilder::RunOptions(std::vector<std::string> arguments) const {
  CompileRunOptions run;
  run.arguments = std::move(arguments);
  run.read_only_binds = binds_;
  run.slot = slot_;
  run.memory_bytes_max = options_.memory_bytes_max;
  run.timeout = options_.timeout;
  return run;
}

absl::StatusOr<std::string> CppBuilder::Ask(std::vector<std::string> arguments) const {
  CompileRunOptions run = RunOptions(std::move(arguments));
  run.want_artifact = false;
  run.timeout = kQuestionMax;
  ASSAY_ASSIGN_OR_RETURN(const CompileRunResult result, RunCompiler(run));
  if (result.timed_out || result.exit.code != 0) {
    return absl::UnavailableError(absl::StrCat("compiler ", options_.compiler, " cannot be run (",
                                               "code ", result.exit.code,
                                               "): ", CleanText(result.log.substr(0, 500))));
  }
  return CleanText(result.log);
}

std::vector<std::string> CppBuilder::Arguments(const BuildRequest& request,
                                               const std::vector<std::string>& libraries) const {
  std::vector<std::string> arguments = {program_};
  arguments.insert(arguments.end(), std::begin(kFixedFlags), std::end(kFixedFlags));
  arguments.insert(arguments.end(), request.options.begin(), request.options.end());
  for (const auto& [name, value] : request.macros) {
    arguments.push_back(absl::StrCat("-D", name, "=", value));
  }
  // Whatever a source is called, it is C++: no assembler files, no objects.
  arguments.insert(arguments.end(), {"-x", "c++"});
  arguments.insert(arguments.end(), request.sources.begin(), request.sources.end());
  arguments.insert(arguments.end(), {kInvokePath, "-o", kArtifactInside, "-Wl,-z,defs"});
  arguments.insert(arguments.end(), libraries.begin(), libraries.end());
  return arguments;
}

absl::StatusOr<CompileRunResult> CppBuilder::Compile(
    const BuildRequest& request, const std::vector<std::string>& arguments) const {
  CompileRunOptions run = RunOptions(arguments);
  run.files = request.files;
  run.files.push_back({kPreludePath, request.prelude});
  run.files.push_back({kInvokePath, request.invoke_source});
  return RunCompiler(run);
}

// Compiles the canary in the same way; a bad status when that fails too.
absl::Status CppBuilder::CheckMachine(std::string_view log) const {
  const BuildRequest canary = CanaryRequest();
  ASSAY_ASSIGN_OR_RETURN(const CompileRunResult run, Compile(canary, Arguments(canary, {})));
  if (!run.timed_out && run.exit.code == 0 && absl::StartsWith(run.artifact, "\177ELF")) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(
      absl::StrCat("this machine cannot compile: a known-good source fails too; the compiler "
                   "said: ",
                   CleanText(run.log.empty() ? log.substr(0, 500) : run.log.substr(0, 500))));
}

absl::StatusOr<BuildResult> CppBuilder::Build(const BuildRequest& request) {
  BuildResult result;
  result.message = RefuseRequest(request, IsOptionAllowed, &result.reason);
  std::vector<std::string> libraries;
  for (const std::string& library : request.libraries) {
    absl::StatusOr<std::vector<std::string>> flags = LibraryFlags(library, options_.library_root);
    if (absl::IsInvalidArgument(flags.status())) {
      result.reason = "OPTION_NOT_ALLOWED";
      result.message = std::string(flags.status().message());
    } else if (!flags.ok()) {
      return flags.status();
    } else {
      libraries.insert(libraries.end(), flags->begin(), flags->end());
    }
  }
  if (!result.message.empty()) return result;
  result.arguments = Arguments(request, libraries);
  const std::string key =
      BuildKey({kBuilderVersion, compiler_, native_}, request, result.arguments);
  BuildSteps steps;
  steps.compile = [&] { return Compile(request, result.arguments); };
  steps.is_artifact = [](std::string_view artifact) { return artifact.starts_with("\177ELF"); };
  steps.read_diagnostics = ParseDiagnostics;
  steps.judge = [&](const CompileRunResult& run, const std::vector<BuildDiagnostic>& diagnostics) {
    return JudgeFailure(
        run, diagnostics, options_, [&] { return CheckMachine(run.log); },
        [&] { return ClassifyFailure(diagnostics, request.prelude); });
  };
  return BuildThroughCache(cache_, key, steps, result);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Builder>> MakeCppBuilder(const CppBuilderOptions& options) {
  ASSAY_ASSIGN_OR_RETURN(BuildCache cache,
                         BuildCache::Open(options.cache_directory, options.cache_bytes_max));
  ASSAY_ASSIGN_OR_RETURN(const SlotShare slots, ProcessSlots());
  auto builder = std::make_unique<CppBuilder>(options, std::move(cache), slots.builder);
  ASSAY_RETURN_IF_ERROR(Annotate(builder->Prepare(), "C++ builder"));
  return std::unique_ptr<Builder>(std::move(builder));
}

}  // namespace assay
