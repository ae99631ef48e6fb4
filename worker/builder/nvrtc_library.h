// NVRTC by dlopen: the few functions that assay-nvrtc calls. Needs neither toolkit nor driver to
// build.
#ifndef ASSAY_WORKER_BUILDER_NVRTC_LIBRARY_H_
#define ASSAY_WORKER_BUILDER_NVRTC_LIBRARY_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace assay {

struct NvrtcVersion {
  int major = 0;
  int minor = 0;
  std::vector<int> architectures;  // 75, 80, ...
};

struct NvrtcJob {
  std::string name;  // of the program
  std::string text;
  std::vector<std::pair<const char*, const char*>> headers;  // name, text
  std::vector<std::string> options;
};

struct NvrtcOutcome {
  int code = 0;      // of NVRTC: 0 is success
  std::string what;  // the code in words
  std::string log;
  std::string ptx;
};

// Code of NVRTC for errors in the program.
inline constexpr int kNvrtcCompilationError = 6;
inline constexpr int kNvrtcOutOfMemory = 1;

// Not thread-safe. The library stays loaded until the process ends.
class NvrtcLibrary {
 public:
  // False, with a sentence in `error`, when the library or one of its functions is not there.
  bool Open(const std::string& path, std::string* error);
  NvrtcVersion Version() const;
  NvrtcOutcome Compile(const NvrtcJob& job) const;

 private:
  using Program = void*;

  int (*version_)(int*, int*) = nullptr;
  int (*architecture_count_)(int*) = nullptr;  // not in old ones
  int (*architectures_)(int*) = nullptr;
  int (*create_)(Program*, const char*, const char*, int, const char* const*,
                 const char* const*) = nullptr;
  int (*destroy_)(Program*) = nullptr;
  int (*compile_)(Program, int, const char* const*) = nullptr;
  int (*log_size_)(Program, size_t*) = nullptr;
  int (*log_)(Program, char*) = nullptr;
  int (*ptx_size_)(Program, size_t*) = nullptr;
  int (*ptx_)(Program, char*) = nullptr;
  const char* (*error_string_)(int) = nullptr;
};

}  // namespace assay

#endif  // ASSAY_WORKER_BUILDER_NVRTC_LIBRARY_H_
