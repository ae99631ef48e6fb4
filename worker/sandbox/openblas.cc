#include "worker/sandbox/openblas.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace assay {
namespace {

// Without threads first: a call has one thread.
constexpr const char* kVariants[] = {"openblas-serial", "openblas-pthread", "openblas-openmp"};
constexpr const char* kMachines[] = {"x86_64-linux-gnu", "aarch64-linux-gnu"};

}  // namespace

std::optional<OpenblasFolders> FindOpenblas(const std::string& root) {
  for (const char* variant : kVariants) {
    for (const char* machine : kMachines) {
      // By the real folder: the usual link goes through /etc, which is not there in a sandbox.
      const std::string library = absl::StrCat("/usr/lib/", machine, "/", variant);
      if (access(absl::StrCat(root, library, "/libopenblas.so").c_str(), R_OK) != 0) continue;
      return OpenblasFolders{absl::StrCat("/usr/include/", machine, "/", variant), library};
    }
  }
  return std::nullopt;
}

}  // namespace assay
