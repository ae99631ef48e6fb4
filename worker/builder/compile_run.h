// One run of a compiler in its sandbox: what goes in are bytes, what comes out are bytes.
#ifndef ASSAY_WORKER_BUILDER_COMPILE_RUN_H_
#define ASSAY_WORKER_BUILDER_COMPILE_RUN_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/limits.h"
#include "worker/sandbox/sandbox.h"

namespace assay {

// Where the sources lie, which is also the working directory.
inline constexpr char kSourceFolder[] = "/src";
// What a run leaves for the host, if anything.
inline constexpr char kArtifactInside[] = "/tmp/artifact";

// Of all files in a run, and of each: one that is made on the way may be larger than the artifact,
// which is capped on its way out.
inline constexpr int64_t kCompileTmpfsBytes = int64_t{256} << 20;
inline constexpr int64_t kCompileFileBytesMax = 2 * int64_t{limits::kArtifactBytesMax};
inline constexpr int kCompileProcessesMax = 64;
// CPU time of one process beyond the time on the wall clock.
inline constexpr absl::Duration kCompileCpuBeyond = absl::Seconds(5);

struct CompileRunOptions {
  std::vector<std::string> arguments;  // argv of the compiler; searched in PATH inside
  std::vector<std::pair<std::string, std::string>> files;  // path under kSourceFolder, content
  std::vector<std::pair<std::string, std::string>> read_only_binds;
  std::vector<SandboxFile> programs;  // copied in beside the sources, such as a compiler of ours
  bool want_artifact = true;
  size_t artifact_bytes_max = limits::kArtifactBytesMax;
  bool fixed_addresses = false;  // see SandboxOptions
  int slot = 0;
  int64_t memory_bytes_max = 0;
  absl::Duration timeout;
};

struct CompileRunResult {
  SandboxExit exit;
  std::string log;       // both streams, capped
  std::string artifact;  // capped
  bool log_flood = false;
  bool artifact_too_large = false;
  bool timed_out = false;
};

// Thread-safe. Blocks. A bad status is the machine's.
absl::StatusOr<CompileRunResult> RunCompiler(const CompileRunOptions& options);

}  // namespace assay

#endif  // ASSAY_WORKER_BUILDER_COMPILE_RUN_H_
