// Builders of device code: CUDA C++ to PTX by NVRTC, and PTX as it is. Neither needs a GPU.
#ifndef ASSAY_WORKER_BUILDER_CUDA_BUILDER_H_
#define ASSAY_WORKER_BUILDER_CUDA_BUILDER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/builder/builder.h"

namespace assay {

struct CudaBuilderOptions : CompileLimits {
  std::string cache_directory;
  int64_t cache_bytes_max = limits::kBuildCacheBytesMax;
  int64_t precompiled_bytes_max = limits::kPrecompiledHeaderCacheBytesMax;
  std::string helper;                   // path of assay-nvrtc
  std::string target = "compute_80";    // virtual architecture
  std::vector<std::string> cuda_roots;  // empty: CudaRoots()
  bool precompiled_headers = true;
  bool resource_report = true;  // by ptxas, where it is installed
};

// Artifacts are PTX. NVRTC runs in the build sandbox, in a small program of ours that loads it.
// UNAVAILABLE with reason kCudaNotInstalled or kCudaTooOld, which say what to install.
absl::StatusOr<std::unique_ptr<Builder>> MakeCudaBuilder(const CudaBuilderOptions& options);

// Takes exactly one source, which is the artifact; compile options are refused, macros only matter
// to the plan. Uses of `options`: the cache, the limits, and ptxas, where it is installed, for a
// report and an early refusal. Needs no toolkit.
absl::StatusOr<std::unique_ptr<Builder>> MakePtxBuilder(const CudaBuilderOptions& options);

}  // namespace assay

#endif  // ASSAY_WORKER_BUILDER_CUDA_BUILDER_H_
