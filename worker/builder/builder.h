// Turns sources into an artifact, inside a sandbox of its own. One builder a language.
#ifndef ASSAY_WORKER_BUILDER_BUILDER_H_
#define ASSAY_WORKER_BUILDER_BUILDER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/limits.h"

namespace assay {

inline constexpr char kLibraryNotInstalled[] = "LIBRARY_NOT_INSTALLED";
inline constexpr char kCudaNotInstalled[] = "CUDA_NOT_INSTALLED";
inline constexpr char kCudaTooOld[] = "CUDA_TOO_OLD";

// What is built: sources by name and content, in compile order, and what goes before and after
// them.
struct BuildRequest {
  std::vector<std::pair<std::string, std::string>> files;  // all files, path and content
  std::vector<std::string> sources;                        // paths of those that are compiled
  std::string prelude;               // header text included before each source (the prototype)
  std::string invoke_source;         // translation unit that defines assay_invoke
  std::vector<std::string> options;  // the candidate's, checked against the allow-list
  std::vector<std::pair<std::string, int64_t>> macros;  // configuration
  std::vector<std::string> libraries;  // allow-listed names, for baselines: "openblas"
};

struct BuildDiagnostic {
  int severity = 0;  // values of assay.v1.Diagnostic.Severity
  std::string file;
  int line = 0;
  int column = 0;
  std::string message;
};

// What one entry point takes of a device, as the assembler for it reports.
struct KernelResources {
  std::string kernel;
  int registers = 0;
  int barriers = 0;
  int64_t stack_bytes = 0;
  int64_t spill_store_bytes = 0;
  int64_t spill_load_bytes = 0;
  int64_t static_shared_bytes = 0;
};

struct BuildResult {
  bool ok = false;
  std::string reason;   // when not ok; README.md lists them
  std::string message;  // when not ok and the first errors do not say it best: what is wrong, and
                        // what to do
  std::string artifact_path;  // when ok: a file in the cache, named by key
  std::string artifact_digest;
  bool from_cache = false;
  absl::Duration duration;
  absl::Duration compiler_duration;  // inside the sandbox, where the builder knows; else zero
  bool precompiled_headers = false;  // were used in this very build
  std::vector<std::string> arguments;
  std::vector<BuildDiagnostic> diagnostics;
  std::string log;
  std::vector<KernelResources> resources;  // device code, where ptxas is installed
};

// Thread-safe. Build blocks for seconds.
class Builder {
 public:
  virtual ~Builder() = default;
  // Name and version of the compiler, e.g. "g++ 12.2.0 (Debian 12.2.0-14)".
  virtual const std::string& compiler() const = 0;
  // A bad status is the machine's fault (compiler missing, disk full, out of memory, fork failed):
  // never the candidate's, never cached. After a failure that the sources do not explain, a
  // known-good source is compiled to tell the two apart. The reason is kLibraryNotInstalled when
  // one of `libraries` is not there, kCudaNotInstalled or kCudaTooOld when the toolkit is missing.
  virtual absl::StatusOr<BuildResult> Build(const BuildRequest& request) = 0;
};

// Of one run of a compiler.
struct CompileLimits {
  absl::Duration timeout = absl::Seconds(limits::kBuildSeconds);
  int64_t memory_bytes_max = limits::kBuildMemoryBytes;
};

struct CppBuilderOptions : CompileLimits {
  std::string cache_directory;
  // Searched in /usr/bin, or an absolute path; with one outside /usr the folder above its own is
  // bound into the sandbox.
  std::string compiler = "g++";
  int64_t cache_bytes_max = limits::kBuildCacheBytesMax;
  std::string library_root;  // goes before the paths where libraries are looked for; for tests
};
// Asks the compiler for its version and for what -march=native is here; UNAVAILABLE when it cannot
// be run. Flags: -std=c++20 -O3 -march=native -ffp-contract=off -shared -fPIC.
absl::StatusOr<std::unique_ptr<Builder>> MakeCppBuilder(const CppBuilderOptions& options);

}  // namespace assay

#endif  // ASSAY_WORKER_BUILDER_BUILDER_H_
