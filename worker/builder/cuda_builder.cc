// The builder for CUDA C++: NVRTC in a sandbox.
#include "worker/builder/cuda_builder.h"

#include <fcntl.h>
#include <sys/utsname.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/status.h"
#include "base/strings.h"
#include "worker/builder/build_cache.h"
#include "worker/builder/cached_build.h"
#include "worker/builder/compile_failure.h"
#include "worker/builder/compile_run.h"
#include "worker/builder/cuda_diagnostics.h"
#include "worker/builder/cuda_options.h"
#include "worker/builder/cuda_toolkit.h"
#include "worker/builder/hoisted_headers.h"
#include "worker/builder/precompiled_headers.h"
#include "worker/builder/ptxas.h"
#include "worker/sandbox/slots.h"
#include "worker/sandbox/text.h"

namespace assay {
namespace {

constexpr char kBuilderVersion[] = "cuda-builder-2";
constexpr char kHelperInside[] = "/assay/assay-nvrtc";
constexpr char kLibraryInside[] = "/cuda/lib";
constexpr char kPchInside[] = "/cuda/headers.pch";
constexpr char kPreludePath[] = ".assay/prelude.h";
constexpr char kHelperMark[] = "assay-nvrtc: ";
constexpr char kStandard[] = "c++17";
constexpr absl::Duration kQuestionMax = absl::Seconds(30);
constexpr size_t kHelperBytesMax = 64 << 20;

BuildRequest CanaryRequest() {
  BuildRequest request;
  request.files = {{"canary.cu", "extern \"C\" __global__ void canary(int* x) { *x += 1; }\n"}};
  request.sources = {"canary.cu"};
  return request;
}

bool IsPtx(std::string_view artifact) { return artifact.find(".version") != artifact.npos; }

// Takes the helper's last line off the log: how long it took, and whether the precompiled header
// was used.
struct HelperNote {
  absl::Duration duration;
  bool pch_used = false;
};

HelperNote TakeHelperNote(std::string* log) {
  HelperNote note;
  absl::string_view text = absl::StripTrailingAsciiWhitespace(*log);
  const size_t begin = text.rfind('\n') == text.npos ? 0 : text.rfind('\n') + 1;
  absl::string_view line = text.substr(begin);
  double ms = 0;
  if (!absl::ConsumePrefix(&line, kHelperMark) ||
      !absl::SimpleAtod(line.substr(0, line.find(' ')), &ms)) {
    return note;
  }
  note.duration = absl::Milliseconds(ms);
  note.pch_used = absl::EndsWith(line, "precompiled headers");
  log->resize(begin);
  return note;
}

// Of a source with which NVRTC fails without a word, where others compile.
std::string Unexplained(const SandboxExit& exit) {
  if (exit.signal == 0) {
    return absl::StrCat("the compiler failed on this source alone (code ", exit.code,
                        ") and did not say why; see the log");
  }
  return absl::StrCat("the compiler crashed on this source alone (signal ", exit.signal, ", ",
                      strsignal(exit.signal),
                      "); it is a fault of NVRTC, so write what is unusual in the source in "
                      "another way: templates, asm, constant expressions");
}

class CudaBuilder : public Builder {
 public:
  CudaBuilder(CudaBuilderOptions options, CudaToolkit toolkit, BuildCache cache, int slot)
      : options_(std::move(options)),
        toolkit_(std::move(toolkit)),
        cache_(std::move(cache)),
        slot_(slot),
        precompiled_(options_.cache_directory + "/pch", options_.precompiled_bytes_max),
        precompile_(options_.precompiled_headers) {}

  absl::Status Prepare();
  const std::string& compiler() const override { return compiler_; }
  absl::StatusOr<BuildResult> Build(const BuildRequest& request) override;

 private:
  absl::StatusOr<CompileRunResult> RunHelper(CompileRunOptions run,
                                             std::vector<std::string> arguments) const;
  CompileRunOptions RunOptions() const;
  absl::Status CheckVersion(std::string_view answer);
  std::vector<std::string> CompilerOptions(const CudaOptions& asked) const;
  bool IsToolkitHeader(const std::string& name) const;
  std::vector<std::string> Hoist(const BuildRequest& request, const CudaOptions& asked) const;
  std::optional<std::string> PrecompiledHeader(const std::vector<std::string>& hoisted,
                                               const std::vector<std::string>& compiler);
  absl::StatusOr<CompileRunResult> Compile(const BuildRequest& request, const CudaOptions& asked,
                                           HelperNote* note);
  absl::Status CheckMachine(std::string_view log);

  const CudaBuilderOptions options_;
  const CudaToolkit toolkit_;
  const BuildCache cache_;
  const int slot_;
  PrecompiledHeaders precompiled_;
  std::atomic<bool> precompile_;
  std::vector<std::pair<std::string, std::string>> binds_;
  UniqueFd helper_;
  std::string helper_digest_;
  std::string compiler_;
  std::string kernel_release_;
  PtxasOptions ptxas_;
};

absl::Status CudaBuilder::Prepare() {
  helper_.Reset(open(options_.helper.c_str(), O_RDONLY | O_CLOEXEC));
  if (!helper_.valid()) return ErrnoError(errno, absl::StrCat("open ", options_.helper));
  ASSAY_ASSIGN_OR_RETURN(const std::string helper, ReadFile(options_.helper, kHelperBytesMax));
  helper_digest_ = Sha256Hex(helper);
  binds_ = {{toolkit_.library_folder, kLibraryInside}};
  for (size_t i = 0; i < toolkit_.include_folders.size(); ++i) {
    binds_.push_back({toolkit_.include_folders[i], absl::StrCat("/cuda/include", i)});
  }
  utsname system = {};
  if (uname(&system) == 0) kernel_release_ = system.release;
  // bubblewrap binds the file as the sandbox's user.
  if (!IsReachableByAll(std::filesystem::absolute(options_.cache_directory).string())) {
    precompile_ = false;
  }
  if (options_.resource_report) ptxas_.program = toolkit_.ptxas;
  ptxas_.target = RealArchitecture(options_.target);
  ptxas_.compile_limits = options_;
  ptxas_.slot = slot_;

  CompileRunOptions run = RunOptions();
  run.want_artifact = false;
  run.timeout = kQuestionMax;
  ASSAY_ASSIGN_OR_RETURN(const CompileRunResult answer, RunHelper(std::move(run), {"--query"}));
  if (answer.timed_out || answer.exit.code != 0) {
    return ErrorWithReason(
        absl::StatusCode::kUnavailable, kCudaNotInstalled,
        absl::StrCat("NVRTC of ", toolkit_.root, " cannot be used (code ", answer.exit.code,
                     "): ", CleanText(answer.log.substr(0, 500)),
                     "; run scripts/setup, or set ASSAY_CUDA_ROOT to a whole toolkit"));
  }
  return CheckVersion(CleanText(answer.log));
}

// `answer` is "nvrtc 13.0 75 80 ...".
absl::Status CudaBuilder::CheckVersion(std::string_view answer) {
  const std::vector<std::string> words =
      absl::StrSplit(absl::StripAsciiWhitespace(Av(answer)), ' ', absl::SkipEmpty());
  if (words.size() < 2 || words[0] != "nvrtc") {
    return absl::InternalError(absl::StrCat("assay-nvrtc answered ", Av(answer.substr(0, 200))));
  }
  compiler_ = absl::StrCat("NVRTC ", words[1]);
  const std::string wanted(absl::StripPrefix(options_.target, "compute_"));
  const std::string number = wanted.substr(0, wanted.find_first_not_of("0123456789"));
  if (std::find(words.begin() + 2, words.end(), number) != words.end()) return absl::OkStatus();
  return ErrorWithReason(
      absl::StatusCode::kUnavailable, kCudaTooOld,
      absl::StrCat(compiler_, " of ", toolkit_.root, " cannot compile for ", options_.target,
                   ", only for ",
                   words.size() == 2 ? "what it does not say (it is older than 11.2)"
                                     : absl::StrJoin(words.begin() + 2, words.end(), ", "),
                   "; install a CUDA toolkit that can, or run scripts/setup"));
}

CompileRunOptions CudaBuilder::RunOptions() const {
  CompileRunOptions run;
  run.read_only_binds = binds_;
  run.slot = slot_;
  run.memory_bytes_max = options_.memory_bytes_max;
  run.timeout = options_.timeout;
  run.fixed_addresses = true;
  return run;
}

absl::StatusOr<CompileRunResult> CudaBuilder::RunHelper(CompileRunOptions run,
                                                        std::vector<std::string> arguments) const {
  // Reopened, since each run rewinds it.
  UniqueFd helper(
      open(absl::StrCat("/proc/self/fd/", helper_.get()).c_str(), O_RDONLY | O_CLOEXEC));
  if (!helper.valid()) return ErrnoError(errno, absl::StrCat("open ", options_.helper));
  run.programs = {{helper.get(), kHelperInside, 0555}};
  run.arguments = {kHelperInside,
                   absl::StrCat("--library=", kLibraryInside, "/", toolkit_.library)};
  run.arguments.insert(run.arguments.end(), arguments.begin(), arguments.end());
  return RunCompiler(run);
}

std::vector<std::string> CudaBuilder::CompilerOptions(const CudaOptions& asked) const {
  std::vector<std::string> options = {
      absl::StrCat("--gpu-architecture=", options_.target),
      absl::StrCat("-std=", asked.standard.empty() ? kStandard : asked.standard),
      "--generate-line-info", "-default-device",
      // Our headers and the toolkit's both define the macros of <climits>.
      "--diag-suppress=47"};
  options.insert(options.end(), asked.compiler.begin(), asked.compiler.end());
  for (size_t i = 0; i < toolkit_.include_folders.size(); ++i) {
    const std::string inside = absl::StrCat("/cuda/include", i);
    options.push_back(absl::StrCat("-I", inside));
    std::error_code error;
    if (std::filesystem::is_directory(toolkit_.include_folders[i] + "/cccl", error)) {
      options.push_back(absl::StrCat("-I", inside, "/cccl"));
    }
  }
  // Last, so that no file of the candidate takes the place of one of the toolkit.
  options.push_back(absl::StrCat("-I", kSourceFolder));
  return options;
}

bool CudaBuilder::IsToolkitHeader(const std::string& name) const {
  return std::any_of(toolkit_.include_folders.begin(), toolkit_.include_folders.end(),
                     [&](const std::string& folder) {
                       std::error_code error;
                       return std::filesystem::is_regular_file(folder + "/" + name, error) ||
                              std::filesystem::is_regular_file(folder + "/cccl/" + name, error);
                     });
}

std::vector<std::string> CudaBuilder::Hoist(const BuildRequest& request,
                                            const CudaOptions& asked) const {
  // Macros of the command line may be meant for headers.
  if (asked.has_defines || request.sources.size() != 1) return {};
  const auto content = [&](const std::string& name) {
    return std::find_if(request.files.begin(), request.files.end(),
                        [&](const auto& file) { return file.first == name; });
  };
  return HoistedHeaders(
      content(request.sources[0])->second,
      [this](const std::string& name) { return IsToolkitHeader(name); },
      [&](const std::string& name) { return content(name) != request.files.end(); });
}

// Path of the precompiled form of `hoisted`, made when it is wanted often enough.
std::optional<std::string> CudaBuilder::PrecompiledHeader(
    const std::vector<std::string>& hoisted, const std::vector<std::string>& compiler) {
  if (hoisted.empty() || !precompile_) return std::nullopt;
  std::vector<std::string> arguments = {absl::StrCat("--output=", kArtifactInside), "--create-pch"};
  for (const std::string& header : hoisted) arguments.push_back("--hoist=" + header);
  arguments.push_back("--");
  arguments.insert(arguments.end(), compiler.begin(), compiler.end());
  const std::string key =
      BuildKey({kBuilderVersion, compiler_, helper_digest_, kernel_release_, toolkit_.root},
               BuildRequest(), arguments);
  std::optional<std::string> path = precompiled_.Find(key);
  if (path.has_value() || !precompiled_.ShouldMake(key)) return path;
  CompileRunOptions run = RunOptions();
  run.files = {{kPreludePath, ""}};  // for the working directory
  run.artifact_bytes_max = limits::kPrecompiledHeaderBytesMax;
  const absl::StatusOr<CompileRunResult> made = RunHelper(std::move(run), std::move(arguments));
  if (!made.ok() || made->timed_out || made->exit.code != 0 || made->artifact.empty() ||
      made->artifact_too_large || !precompiled_.Store(key, made->artifact).ok()) {
    return std::nullopt;
  }
  return precompiled_.Find(key);
}

absl::StatusOr<CompileRunResult> CudaBuilder::Compile(const BuildRequest& request,
                                                      const CudaOptions& asked, HelperNote* note) {
  const std::vector<std::string> compiler = CompilerOptions(asked);
  const std::vector<std::string> hoisted = Hoist(request, asked);
  std::vector<std::string> arguments = {absl::StrCat("--output=", kArtifactInside)};
  for (const std::string& header : hoisted) arguments.push_back("--hoist=" + header);
  for (const auto& [name, value] : request.macros) {
    arguments.push_back(absl::StrCat("--macro=", name, "=", value));
  }
  CompileRunOptions run = RunOptions();
  run.files = request.files;
  if (!request.prelude.empty()) {
    run.files.push_back({kPreludePath, request.prelude});
    arguments.push_back(absl::StrCat("--prelude=", kPreludePath));
  }
  for (const std::string& source : request.sources) arguments.push_back("--source=" + source);
  const auto finish = [&](std::vector<std::string> all) {
    all.push_back("--");
    all.insert(all.end(), compiler.begin(), compiler.end());
    return all;
  };
  const std::optional<std::string> pch = PrecompiledHeader(hoisted, compiler);
  if (pch.has_value()) {
    CompileRunOptions with = run;
    with.read_only_binds.push_back({*pch, kPchInside});
    std::vector<std::string> more = arguments;
    more.push_back(absl::StrCat("--use-pch=", kPchInside));
    absl::StatusOr<CompileRunResult> result = RunHelper(std::move(with), finish(std::move(more)));
    if (result.ok()) {
      *note = TakeHelperNote(&result->log);
      // Where addresses cannot be fixed it never fits.
      if (result->exit.code == 0 && !note->pch_used) precompile_ = false;
      return result;
    }
    // It may have been removed meanwhile.
  }
  ASSAY_ASSIGN_OR_RETURN(CompileRunResult result, RunHelper(std::move(run), finish(arguments)));
  *note = TakeHelperNote(&result.log);
  return result;
}

absl::Status CudaBuilder::CheckMachine(std::string_view log) {
  HelperNote note;
  ASSAY_ASSIGN_OR_RETURN(const CompileRunResult run,
                         Compile(CanaryRequest(), CudaOptions(), &note));
  if (!run.timed_out && run.exit.code == 0 && IsPtx(run.artifact)) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("this machine cannot compile CUDA C++: a known-good source fails too; the "
                   "compiler said: ",
                   CleanText(run.log.empty() ? log.substr(0, 500) : run.log.substr(0, 500))));
}

absl::StatusOr<BuildResult> CudaBuilder::Build(const BuildRequest& request) {
  BuildResult result;
  CudaOptions asked;
  result.message = RefuseRequest(
      request, [&](std::string_view option) { return TakeCudaOption(option, &asked); },
      &result.reason);
  if (result.message.empty() && !request.libraries.empty()) {
    result.reason = "OPTION_NOT_ALLOWED";
    result.message = "device code is linked with no library";
  }
  if (!result.message.empty()) return result;
  result.arguments = CompilerOptions(asked);
  for (const auto& [name, value] : request.macros) {
    result.arguments.push_back(absl::StrCat("-D", name, "=", value));
  }
  result.arguments.insert(result.arguments.end(), request.sources.begin(), request.sources.end());
  const std::string key =
      BuildKey({kBuilderVersion, compiler_, helper_digest_, toolkit_.root, ptxas_.program}, request,
               result.arguments);
  HelperNote note;
  BuildSteps steps;
  steps.compile = [&] { return Compile(request, asked, &note); };
  steps.is_artifact = IsPtx;
  steps.read_diagnostics = ParseNvrtcDiagnostics;
  steps.judge = [&](const CompileRunResult& run, const std::vector<BuildDiagnostic>& diagnostics) {
    return JudgeFailure(
        run, diagnostics, options_, [&] { return CheckMachine(run.log); },
        [&] {
          CompileFailure failure = ClassifyNvrtcFailure(diagnostics, request.files);
          if (failure.message.empty() && !ExplainedBySources(diagnostics)) {
            failure.message = Unexplained(run.exit);
          }
          return failure;
        });
  };
  steps.inspect = [&](std::string_view ptx) { return InspectPtx(ptxas_, ptx); };
  std::string report;
  ASSAY_ASSIGN_OR_RETURN(result, BuildThroughCache(cache_, key, steps, std::move(result), &report));
  result.resources = ParsePtxasReport(report);
  result.compiler_duration = note.duration;
  result.precompiled_headers = note.pch_used;
  return result;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Builder>> MakeCudaBuilder(const CudaBuilderOptions& options) {
  ASSAY_ASSIGN_OR_RETURN(
      CudaToolkit toolkit,
      FindCudaToolkit(options.cuda_roots.empty() ? CudaRoots() : options.cuda_roots));
  ASSAY_ASSIGN_OR_RETURN(
      BuildCache cache, BuildCache::Open(options.cache_directory, options.cache_bytes_max, ".ptx"));
  ASSAY_ASSIGN_OR_RETURN(const SlotShare slots, ProcessSlots());
  auto builder =
      std::make_unique<CudaBuilder>(options, std::move(toolkit), std::move(cache), slots.builder);
  ASSAY_RETURN_IF_ERROR(Annotate(builder->Prepare(), "CUDA builder"));
  return std::unique_ptr<Builder>(std::move(builder));
}

}  // namespace assay
