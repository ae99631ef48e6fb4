// Artifacts on disk, named by the digest of what they were built from. Thread-safe; several
// processes may share one folder.
#ifndef ASSAY_WORKER_BUILDER_BUILD_CACHE_H_
#define ASSAY_WORKER_BUILDER_BUILD_CACHE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace assay {

class BuildCache {
 public:
  struct Entry {
    std::string path;
    std::string digest;  // of the artifact
    std::string log;     // of the compiler
    std::string report;  // of resources; may be empty
  };

  // Makes the folder. Artifacts get names that end in `suffix`.
  static absl::StatusOr<BuildCache> Open(const std::string& directory, int64_t bytes_max,
                                         std::string suffix = ".so");

  // Nothing when it is not there or damaged.
  std::optional<Entry> Find(const std::string& key) const;
  // Afterwards the oldest entries are removed until the folder fits `bytes_max`.
  absl::StatusOr<Entry> Store(const std::string& key, std::string_view artifact,
                              std::string_view log, std::string_view report = "") const;

 private:
  BuildCache(std::string directory, int64_t bytes_max, std::string suffix)
      : directory_(std::move(directory)), bytes_max_(bytes_max), suffix_(std::move(suffix)) {}
  std::string ArtifactPath(const std::string& key) const;
  std::string NotePath(const std::string& key) const;
  void Trim(const std::string& keep) const;

  std::string directory_;
  int64_t bytes_max_;
  std::string suffix_;
};

}  // namespace assay

#endif  // ASSAY_WORKER_BUILDER_BUILD_CACHE_H_
