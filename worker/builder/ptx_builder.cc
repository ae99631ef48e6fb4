// The builder for PTX: the source is the artifact.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "worker/builder/build_cache.h"
#include "worker/builder/cached_build.h"
#include "worker/builder/cuda_builder.h"
#include "worker/builder/cuda_diagnostics.h"
#include "worker/builder/cuda_toolkit.h"
#include "worker/builder/ptxas.h"
#include "worker/sandbox/slots.h"
#include "worker/sandbox/text.h"

namespace assay {
namespace {

constexpr char kBuilderVersion[] = "ptx-builder-2";

class PtxBuilder : public Builder {
 public:
  PtxBuilder(BuildCache cache, PtxasOptions ptxas)
      : cache_(std::move(cache)),
        ptxas_(std::move(ptxas)),
        compiler_(ptxas_.program.empty() ? "PTX as it is" : "PTX as it is, checked by ptxas") {}

  const std::string& compiler() const override { return compiler_; }
  absl::StatusOr<BuildResult> Build(const BuildRequest& request) override;

 private:
  const BuildCache cache_;
  const PtxasOptions ptxas_;
  const std::string compiler_;
};

// Why `ptx` cannot be taken; empty when it can.
std::string RefusePtx(const std::string& name, const std::string& ptx) {
  if (ptx.size() > limits::kSourceBytesMax) {
    return absl::StrCat(name, " has ", ptx.size(), " bytes; at most ", limits::kSourceBytesMax,
                        " are allowed");
  }
  if (CleanText(absl::StrReplaceAll(ptx, {{"\r", ""}})) != absl::StrReplaceAll(ptx, {{"\r", ""}})) {
    return absl::StrCat(name,
                        " is not plain UTF-8 text without control characters; PTX is text, "
                        "not a cubin");
  }
  if (ptx.find(".version") == std::string::npos || ptx.find(".target") == std::string::npos) {
    return absl::StrCat(name, " has no .version and .target directive; it is no PTX module");
  }
  return "";
}

absl::StatusOr<BuildResult> PtxBuilder::Build(const BuildRequest& request) {
  BuildResult result;
  result.message = RefuseRequest(
      request, [](std::string_view) { return false; }, &result.reason);
  if (!result.message.empty()) return result;
  result.reason = "COMPILE_FAILED";
  if (request.sources.size() != 1) {
    result.message = absl::StrCat("a PTX candidate has exactly one source, but there are ",
                                  request.sources.size(), "; PTX modules cannot be joined");
    return result;
  }
  const auto source =
      std::find_if(request.files.begin(), request.files.end(),
                   [&](const auto& file) { return file.first == request.sources[0]; });
  result.message = RefusePtx(source->first, source->second);
  if (!result.message.empty()) return result;
  result.reason.clear();
  BuildRequest keyed;
  keyed.files = {*source};
  const std::string key =
      BuildKey({kBuilderVersion, ptxas_.program, ptxas_.target}, keyed, result.arguments);
  BuildSteps steps;
  steps.compile = [&]() -> absl::StatusOr<CompileRunResult> {
    CompileRunResult run;
    run.artifact = source->second;
    return run;
  };
  steps.is_artifact = [](std::string_view artifact) { return !artifact.empty(); };
  steps.read_diagnostics = [](std::string_view) { return std::vector<BuildDiagnostic>(); };
  steps.judge = [](const CompileRunResult&, const std::vector<BuildDiagnostic>&) {
    return CompileFailure{"COMPILE_FAILED", "the source is empty"};
  };
  steps.inspect = [&](std::string_view ptx) { return InspectPtx(ptxas_, ptx); };
  std::string report;
  ASSAY_ASSIGN_OR_RETURN(result, BuildThroughCache(cache_, key, steps, std::move(result), &report));
  result.resources = ParsePtxasReport(report);
  return result;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Builder>> MakePtxBuilder(const CudaBuilderOptions& options) {
  ASSAY_ASSIGN_OR_RETURN(
      BuildCache cache, BuildCache::Open(options.cache_directory, options.cache_bytes_max, ".ptx"));
  ASSAY_ASSIGN_OR_RETURN(const SlotShare slots, ProcessSlots());
  PtxasOptions ptxas;
  const absl::StatusOr<CudaToolkit> toolkit =
      FindCudaToolkit(options.cuda_roots.empty() ? CudaRoots() : options.cuda_roots);
  if (toolkit.ok() && options.resource_report) ptxas.program = toolkit->ptxas;
  ptxas.target = RealArchitecture(options.target);
  ptxas.compile_limits = options;
  ptxas.slot = slots.builder;
  return std::unique_ptr<Builder>(std::make_unique<PtxBuilder>(std::move(cache), ptxas));
}

}  // namespace assay
