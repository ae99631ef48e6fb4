// What the builders of all languages share: refusals, the key, and the way from the cache through
// the compiler into the cache.
#ifndef ASSAY_WORKER_BUILDER_CACHED_BUILD_H_
#define ASSAY_WORKER_BUILDER_CACHED_BUILD_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/builder/build_cache.h"
#include "worker/builder/builder.h"
#include "worker/builder/compile_run.h"
#include "worker/builder/diagnostics.h"

namespace assay {

// Why the request cannot be built at all, with its reason; empty when it can.
std::string RefuseRequest(const BuildRequest& request,
                          const std::function<bool(std::string_view)>& is_option_allowed,
                          std::string* reason);

// Digest of everything that an artifact follows from. `identity` is the builder's own: its version,
// the compiler's, the machine's.
std::string BuildKey(const std::vector<std::string>& identity, const BuildRequest& request,
                     const std::vector<std::string>& arguments);

// What a further look at an artifact gives.
struct Inspection {
  bool refused = false;                   // the artifact cannot be used; `diagnostics` say why
  std::string reason = "COMPILE_FAILED";  // when refused
  std::string report;                     // kept beside the artifact
  std::string log;
  std::vector<BuildDiagnostic> diagnostics;
};

// One language's part. All are called on the calling thread, while BuildThroughCache runs.
struct BuildSteps {
  std::function<absl::StatusOr<CompileRunResult>()> compile;
  std::function<bool(std::string_view artifact)> is_artifact;
  std::function<std::vector<BuildDiagnostic>(std::string_view log)> read_diagnostics;
  std::function<absl::StatusOr<CompileFailure>(const CompileRunResult& run,
                                               const std::vector<BuildDiagnostic>& diagnostics)>
      judge;
  std::function<absl::StatusOr<Inspection>(std::string_view artifact)> inspect;  // may be empty
};

// Fills what follows into `result`, which has `arguments`. `report` gets the report of the
// artifact.
absl::StatusOr<BuildResult> BuildThroughCache(const BuildCache& cache, const std::string& key,
                                              const BuildSteps& steps, BuildResult result,
                                              std::string* report = nullptr);

}  // namespace assay

#endif  // ASSAY_WORKER_BUILDER_CACHED_BUILD_H_
