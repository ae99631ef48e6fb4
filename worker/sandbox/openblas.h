// Where OpenBLAS is: for the builder that links baselines with it, their guests and assay doctor.
#ifndef ASSAY_WORKER_SANDBOX_OPENBLAS_H_
#define ASSAY_WORKER_SANDBOX_OPENBLAS_H_

#include <optional>
#include <string>

namespace assay {

// By this name a baseline asks for it.
inline constexpr char kOpenblasLibrary[] = "openblas";

struct OpenblasFolders {
  std::string headers;
  std::string library;
};

// Looks below /usr, which is what a sandbox sees; nothing when it is not installed. `root` goes
// before every path looked at, for tests; the result is without it.
std::optional<OpenblasFolders> FindOpenblas(const std::string& root);

}  // namespace assay

#endif  // ASSAY_WORKER_SANDBOX_OPENBLAS_H_
