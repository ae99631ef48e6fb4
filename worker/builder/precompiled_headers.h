// Precompiled headers of NVRTC on disk. Each is made in a sandbox of its own from names of toolkit
// headers alone, so that nothing of one candidate reaches another; candidates' builds only read
// them.
#ifndef ASSAY_WORKER_BUILDER_PRECOMPILED_HEADERS_H_
#define ASSAY_WORKER_BUILDER_PRECOMPILED_HEADERS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace assay {

// Thread-safe. Several processes may share the folder.
class PrecompiledHeaders {
 public:
  PrecompiledHeaders(std::string directory, int64_t bytes_max)
      : directory_(std::move(directory)), bytes_max_(bytes_max) {}

  // Path of the file for `key`, which is then kept longest.
  std::optional<std::string> Find(const std::string& key) const;
  // True once for each key: at the second time that it is asked for. One build does not pay for
  // what is used once.
  bool ShouldMake(const std::string& key);
  // Afterwards the oldest files are removed until the folder fits.
  absl::Status Store(const std::string& key, std::string_view bytes) const;

 private:
  std::string Path(const std::string& key) const;
  void Trim(const std::string& keep) const;

  const std::string directory_;
  const int64_t bytes_max_;
  absl::Mutex mutex_;
  std::map<std::string, int> asked_ ABSL_GUARDED_BY(mutex_);
};

// Whether processes of another user can reach `path`: every folder above it lets them through.
bool IsReachableByAll(const std::string& path);

}  // namespace assay

#endif  // ASSAY_WORKER_BUILDER_PRECOMPILED_HEADERS_H_
