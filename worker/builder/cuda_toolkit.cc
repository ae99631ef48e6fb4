#include "worker/builder/cuda_toolkit.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "base/strings.h"
#include "worker/builder/builder.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool IsFile(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

std::string RealPath(const fs::path& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  return error ? path.string() : real.string();
}

// "libnvrtc.so.13" in `folder`: the highest version; empty when there is none.
std::string FindLibrary(const fs::path& folder) {
  constexpr std::string_view kPrefix = "libnvrtc.so.";
  std::string best;
  int best_version = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    int version = 0;
    if (!name.starts_with(kPrefix) ||
        !absl::SimpleAtoi(Av(std::string_view(name).substr(kPrefix.size())), &version) ||
        version <= best_version || !IsFile(entry.path())) {
      continue;
    }
    best = name;
    best_version = version;
  }
  return best;
}

// A toolkit or the wheels of one, whose parts may lie in folders of their own.
std::optional<CudaToolkit> Look(const fs::path& root) {
  CudaToolkit toolkit;
  toolkit.root = root.string();
  for (const char* folder : {"lib64", "lib", "targets/x86_64-linux/lib", "nvidia/cu13/lib",
                             "nvidia/cuda_nvrtc/lib", "cu13/lib", "cuda_nvrtc/lib"}) {
    toolkit.library = FindLibrary(root / folder);
    if (toolkit.library.empty()) continue;
    toolkit.library_folder = RealPath(root / folder);
    break;
  }
  if (toolkit.library.empty()) return std::nullopt;
  bool has_headers = false;
  for (const char* folder :
       {"include", "targets/x86_64-linux/include", "nvidia/cu13/include",
        "nvidia/cuda_runtime/include", "nvidia/cuda_cccl/include", "nvidia/curand/include",
        "cu13/include", "cuda_runtime/include", "cuda_cccl/include", "curand/include"}) {
    std::error_code error;
    if (!fs::is_directory(root / folder, error)) continue;
    const std::string real = RealPath(root / folder);
    auto& folders = toolkit.include_folders;
    if (std::find(folders.begin(), folders.end(), real) != folders.end()) continue;
    folders.push_back(real);
    has_headers = has_headers || IsFile(root / folder / "cuda_fp16.h");
  }
  if (!has_headers) return std::nullopt;
  for (const char* path : {"bin/ptxas", "nvidia/cu13/bin/ptxas", "nvidia/cuda_nvcc/bin/ptxas",
                           "cu13/bin/ptxas", "cuda_nvcc/bin/ptxas"}) {
    if (!IsFile(root / path)) continue;
    toolkit.ptxas = RealPath(root / path);
    break;
  }
  return toolkit;
}

}  // namespace

std::vector<std::string> CudaRoots() {
  const std::string given = Variable("ASSAY_CUDA_ROOT");
  if (!given.empty()) return {given};
  std::vector<std::string> roots = {"/usr/local/cuda", "/var/cache/assay/cuda"};
  std::string cache = Variable("XDG_CACHE_HOME");
  const std::string home = Variable("HOME");
  if (cache.empty() && !home.empty()) cache = home + "/.cache";
  if (!cache.empty()) roots.push_back(cache + "/assay/cuda");
  return roots;
}

absl::StatusOr<CudaToolkit> FindCudaToolkit(const std::vector<std::string>& roots) {
  for (const std::string& root : roots) {
    std::optional<CudaToolkit> toolkit = Look(root);
    if (toolkit.has_value()) return *std::move(toolkit);
  }
  return ErrorWithReason(
      absl::StatusCode::kUnavailable, kCudaNotInstalled,
      absl::StrCat("CUDA C++ cannot be compiled here: no NVRTC with its headers in ",
                   absl::StrJoin(roots, ", "),
                   "; run scripts/setup, install a CUDA toolkit, or set ASSAY_CUDA_ROOT"));
}

}  // namespace assay
