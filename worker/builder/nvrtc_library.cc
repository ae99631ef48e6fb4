#include "worker/builder/nvrtc_library.h"

#include <dlfcn.h>

namespace assay {
namespace {

template <typename Function>
bool Load(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

}  // namespace

bool NvrtcLibrary::Open(const std::string& path, std::string* error) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    *error = "cannot load NVRTC: " + std::string(why == nullptr ? path.c_str() : why);
    return false;
  }
  if (!Load(library, "nvrtcVersion", &version_) || !Load(library, "nvrtcCreateProgram", &create_) ||
      !Load(library, "nvrtcDestroyProgram", &destroy_) ||
      !Load(library, "nvrtcCompileProgram", &compile_) ||
      !Load(library, "nvrtcGetProgramLogSize", &log_size_) ||
      !Load(library, "nvrtcGetProgramLog", &log_) ||
      !Load(library, "nvrtcGetPTXSize", &ptx_size_) || !Load(library, "nvrtcGetPTX", &ptx_) ||
      !Load(library, "nvrtcGetErrorString", &error_string_)) {
    *error = path + " is no NVRTC: it lacks a function";
    return false;
  }
  (void)Load(library, "nvrtcGetNumSupportedArchs", &architecture_count_);
  (void)Load(library, "nvrtcGetSupportedArchs", &architectures_);
  // NVRTC opens its other half by name alone, which only finds what is loaded already.
  const NvrtcVersion version = Version();
  const std::string builtins = path.substr(0, path.rfind('/') + 1) + "libnvrtc-builtins.so." +
                               std::to_string(version.major) + "." + std::to_string(version.minor);
  (void)dlopen(builtins.c_str(), RTLD_NOW | RTLD_LOCAL);
  return true;
}

NvrtcVersion NvrtcLibrary::Version() const {
  NvrtcVersion version;
  (void)version_(&version.major, &version.minor);
  int count = 0;
  if (architecture_count_ == nullptr || architectures_ == nullptr ||
      architecture_count_(&count) != 0 || count <= 0) {
    return version;
  }
  version.architectures.resize(static_cast<size_t>(count));
  if (architectures_(version.architectures.data()) != 0) version.architectures.clear();
  return version;
}

NvrtcOutcome NvrtcLibrary::Compile(const NvrtcJob& job) const {
  std::vector<const char*> names;
  std::vector<const char*> texts;
  for (const auto& [name, text] : job.headers) {
    names.push_back(name);
    texts.push_back(text);
  }
  std::vector<const char*> options;
  for (const std::string& option : job.options) options.push_back(option.c_str());
  NvrtcOutcome outcome;
  Program program = nullptr;
  outcome.code = create_(&program, job.text.c_str(), job.name.c_str(),
                         static_cast<int>(names.size()), texts.data(), names.data());
  if (outcome.code == 0) {
    outcome.code = compile_(program, static_cast<int>(options.size()), options.data());
    size_t size = 0;
    if (log_size_(program, &size) == 0 && size > 1) {
      outcome.log.resize(size);
      (void)log_(program, outcome.log.data());
      outcome.log.resize(size - 1);  // its NUL
    }
    if (outcome.code == 0) outcome.code = ptx_size_(program, &size);
    if (outcome.code == 0 && size > 1) {
      outcome.ptx.resize(size);
      outcome.code = ptx_(program, outcome.ptx.data());
      outcome.ptx.resize(size - 1);
    }
    (void)destroy_(&program);
  }
  outcome.what = error_string_(outcome.code);
  return outcome;
}

}  // namespace assay
