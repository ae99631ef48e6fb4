#include "worker/sandbox/program_files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "absl/base/const_init.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/file.h"
#include "base/status.h"
#include "base/strings.h"
#include "worker/detect/elf_image.h"
#include "worker/sandbox/openblas.h"

namespace assay {
namespace {

using Binds = std::vector<std::pair<std::string, std::string>>;

// Where the loader looks without /etc/ld.so.cache, which no sandbox has; in its order.
constexpr const char* kFolders[] = {
#if defined(__x86_64__)
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
#elif defined(__aarch64__)
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
#endif
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib"};

// What the compiler links a candidate with by itself. libmvec has vector versions of libm's
// functions.
constexpr const char* kRuntime[] = {"libstdc++.so.6", "libm.so.6", "libmvec.so.1", "libgcc_s.so.1",
                                    "libc.so.6"};

std::string RealPath(const std::string& path) {
  char real[PATH_MAX];
  return realpath(path.c_str(), real) == nullptr ? "" : real;
}

// A file's bytes for as long as it lives; only the pages that are looked at are read.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat status;
    if (!fd.valid() || fstat(fd.get(), &status) != 0 || status.st_size == 0) return;
    size_ = static_cast<size_t>(status.st_size);
    memory_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  }
  ~MappedFile() {
    if (memory_ != MAP_FAILED) munmap(memory_, size_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::string_view bytes() const {
    return memory_ == MAP_FAILED ? std::string_view()
                                 : std::string_view(static_cast<const char*>(memory_), size_);
  }

 private:
  void* memory_ = MAP_FAILED;
  size_t size_ = 0;
};

class Closure {
 public:
  // Adds what the file at `path` is linked with, and its loader.
  absl::Status AddNeedsOf(const std::string& path) {
    const MappedFile file(path);
    const ElfImage image = ReadElf(file.bytes());
    for (const ElfSection& section : image.sections) {
      if (section.name != ".interp") continue;
      const std::string loader(section.bytes.substr(0, section.bytes.find('\0')));
      ASSAY_RETURN_IF_ERROR(Bind(loader));
      names_.insert(loader.substr(loader.rfind('/') + 1));  // whoever needs it has it
    }
    for (const std::string_view name : image.needed) {
      if (const absl::Status added = AddLibrary(std::string(name)); !added.ok()) {
        return absl::UnavailableError(absl::StrCat(path, " needs ", added.message()));
      }
    }
    return absl::OkStatus();
  }

  // By its name in DT_NEEDED. NOT_FOUND when it is in none of the folders.
  absl::Status AddLibrary(const std::string& name) {
    if (!names_.insert(name).second) return absl::OkStatus();
    for (const char* folder : kFolders) {
      const std::string path = absl::StrCat(folder, "/", name);
      const MappedFile file(path);
      // One for another machine has no image here.
      if (ReadElf(file.bytes()).sections.empty()) continue;
      ASSAY_RETURN_IF_ERROR(Bind(path));
      return AddNeedsOf(path);
    }
    return absl::NotFoundError(absl::StrCat(name, ", which is in none of the loader's folders"));
  }

  // Links of folders, such as /lib, stand in the sandbox too, so a file lies in its real folder.
  // The name stays: it is what the loader looks for.
  absl::Status Bind(const std::string& path) {
    const size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : RealPath(path.substr(0, slash));
    const std::string file = RealPath(path);
    if (folder.empty() || file.empty()) {
      return absl::NotFoundError(absl::StrCat(path, ", which is not there"));
    }
    binds_[folder + path.substr(slash)] = file;
    return absl::OkStatus();
  }

  Binds binds() const {
    Binds binds;
    for (const auto& [inside, outside] : binds_) binds.emplace_back(outside, inside);
    return binds;
  }

 private:
  std::set<std::string> names_;
  std::map<std::string, std::string> binds_;  // outside by inside
};

absl::StatusOr<Binds> Find(const std::string& binary, const std::vector<std::string>& libraries) {
  Closure closure;
  ASSAY_RETURN_IF_ERROR(closure.AddNeedsOf(binary));
  for (const char* name : kRuntime) (void)closure.AddLibrary(name);
  for (const std::string& library : libraries) {
    if (library != kOpenblasLibrary) continue;
    const std::optional<OpenblasFolders> folders = FindOpenblas("");
    if (!folders.has_value()) continue;
    ASSAY_RETURN_IF_ERROR(closure.AddNeedsOf(folders->library + "/libopenblas.so"));
    ASSAY_RETURN_IF_ERROR(closure.Bind(folders->library));
  }
  return closure.binds();
}

}  // namespace

absl::StatusOr<Binds> ProgramFiles(const std::string& binary,
                                   const std::vector<std::string>& libraries) {
  using Key = std::pair<std::string, std::vector<std::string>>;
  static absl::Mutex mutex(absl::kConstInit);
  static std::map<Key, Binds>* const kept = new std::map<Key, Binds>();
  const absl::MutexLock lock(&mutex);
  const auto found = kept->find({binary, libraries});
  if (found != kept->end()) return found->second;
  ASSAY_ASSIGN_OR_RETURN(Binds binds, Find(binary, libraries));
  return kept->insert({{binary, libraries}, std::move(binds)}).first->second;
}

}  // namespace assay
