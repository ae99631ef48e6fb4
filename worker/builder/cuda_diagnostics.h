// Reads what NVRTC and ptxas write. Pure functions; the text is hostile.
#ifndef ASSAY_WORKER_BUILDER_CUDA_DIAGNOSTICS_H_
#define ASSAY_WORKER_BUILDER_CUDA_DIAGNOSTICS_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "worker/builder/builder.h"
#include "worker/builder/diagnostics.h"

namespace assay {

// "file(line): error: message", with the column from the caret below.
std::vector<BuildDiagnostic> ParseNvrtcDiagnostics(std::string_view log);

// Paths and contents, as in BuildRequest::files.
using SourceFiles = std::vector<std::pair<std::string, std::string>>;

// COMPILE_FAILED, INCLUDE_FORBIDDEN or COMPILER_LIMIT. Host code and headers of the host, which
// NVRTC refuses in many words, are explained in one.
CompileFailure ClassifyNvrtcFailure(const std::vector<BuildDiagnostic>& diagnostics,
                                    const SourceFiles& files);

// "ptxas file, line N; error : message" and "ptxas fatal : message".
std::vector<BuildDiagnostic> ParsePtxasDiagnostics(std::string_view log);

// The report of `ptxas -v`: at most limits::kKernelResourcesMax entry points.
std::vector<KernelResources> ParsePtxasReport(std::string_view report);

}  // namespace assay

#endif  // ASSAY_WORKER_BUILDER_CUDA_DIAGNOSTICS_H_
