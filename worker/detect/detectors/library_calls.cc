// What a host-tier artifact takes from libraries, by its dynamic symbols, beyond arithmetic, memory
// and text. However a source hides a name, the linker writes it out. A notice only: walls and clock
// do not depend on it.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "assay/v1/evaluation.pb.h"
#include "base/strings.h"
#include "worker/detect/detector.h"
#include "worker/detect/elf_image.h"

namespace assay {
namespace {

constexpr size_t kFindingsMax = 50;
constexpr size_t kNameBytesMax = 200;

constexpr std::string_view kRuntimeLibraries[] = {"libc.so.6",
                                                  "libm.so.6",
                                                  "libstdc++.so.6",
                                                  "libgcc_s.so.1",
                                                  "ld-linux-x86-64.so.2",
                                                  "ld-linux-aarch64.so.1"};

// Of the C library: memory, text, sorting, and what compilers call by themselves.
constexpr std::string_view kPlain[] = {"__cxa_atexit",
                                       "__cxa_finalize",
                                       "__cxa_thread_atexit_impl",
                                       "__errno_location",
                                       "__gmon_start__",
                                       "__stack_chk_fail",
                                       "__tls_get_addr",
                                       "abort",
                                       "abs",
                                       "aligned_alloc",
                                       "bcmp",
                                       "bsearch",
                                       "calloc",
                                       "free",
                                       "labs",
                                       "llabs",
                                       "malloc",
                                       "posix_memalign",
                                       "putchar",
                                       "puts",
                                       "qsort",
                                       "rand",
                                       "rand_r",
                                       "realloc",
                                       "srand",
                                       "stderr",
                                       "stdout"};
constexpr std::string_view kPlainPrefixes[] = {
    "_ITM_",  "__assert", "__fprintf_chk", "__mem", "__printf_chk", "__snprintf_chk",
    "__str",  "fprintf",  "fputc",         "fputs", "fwrite",       "mem",
    "printf", "snprintf", "sprintf",       "str",   "vfprintf",     "vsnprintf",
    "wmem"};

// What a symbol is for, by the beginning of its name, or by what a C++ name contains.
struct Group {
  std::string_view what;
  std::string_view prefix;
};
constexpr Group kGroups[] = {{"linear algebra of a library", "cblas_"},
                             {"linear algebra of a library", "LAPACKE_s"},
                             {"linear algebra of a library", "LAPACKE_d"},
                             {"linear algebra of a library", "sgemm"},
                             {"linear algebra of a library", "dgemm"},
                             {"linear algebra of a library", "openblas"},
                             {"linear algebra of a library", "mkl_"},
                             {"linear algebra of a library", "cublas"},
                             {"Fourier transforms of a library", "fftw"},
                             {"deep learning of a library", "dnnl_"},
                             {"deep learning of a library", "cudnn"},
                             {"loading of libraries", "dl"},
                             {"loading of libraries", "__libc_dl"},
                             {"threads", "pthread_"},
                             {"threads", "thrd_"},

                             {"threads", "sem_"},
                             {"clocks", "clock"},
                             {"clocks", "gettimeofday"},
                             {"clocks", "time"},
                             {"clocks", "ftime"},
                             {"waiting", "nanosleep"},
                             {"waiting", "usleep"},
                             {"waiting", "sleep"},
                             {"waiting", "sched_"},
                             {"mappings of memory", "mprotect"},
                             {"mappings of memory", "mmap"},
                             {"mappings of memory", "munmap"},
                             {"mappings of memory", "mremap"},
                             {"mappings of memory", "shm"},
                             {"mappings of memory", "memfd_"},
                             {"signals", "sig"},
                             {"signals", "__sig"},
                             {"signals", "raise"},
                             {"signals", "kill"},
                             {"processes", "fork"},
                             {"processes", "vfork"},
                             {"processes", "clone"},
                             {"processes", "exec"},
                             {"processes", "posix_spawn"},
                             {"processes", "system"},
                             {"processes", "popen"},
                             {"processes", "ptrace"},
                             {"processes", "_exit"},
                             {"processes", "exit"},
                             {"processes", "_Exit"},
                             {"processes", "wait"},
                             {"system calls", "syscall"},
                             {"the environment", "getenv"},
                             {"the environment", "secure_getenv"},
                             {"the environment", "environ"},
                             {"files", "open"},
                             {"files", "fopen"},
                             {"files", "read"},
                             {"files", "write"},
                             {"files", "pread"},
                             {"files", "pwrite"},
                             {"files", "fread"},
                             {"files", "unlink"},
                             {"files", "stat"},
                             {"network", "socket"},
                             {"network", "connect"},
                             {"the floating-point environment", "fesetround"},
                             {"the floating-point environment", "fesetenv"},
                             {"the floating-point environment", "feenable"},
                             {"the floating-point environment", "fedisable"},
                             {"the floating-point environment", "feholdexcept"},
                             {"the floating-point environment", "feupdateenv"}};
constexpr Group kCxxGroups[] = {
    {"clocks", "6chrono"},        {"threads", "6thread"},
    {"threads", "9_Executor"},    {"threads", "condition_variable"},
    {"threads", "__future_base"}, {"files", "10filesystem"},
    {"files", "basic_filebuf"},   {"files", "fstream"},
    {"files", "__basic_file"},    {"random numbers of the system", "random_device"}};

template <size_t n>
bool StartsWithOne(std::string_view name, const std::string_view (&prefixes)[n]) {
  return std::any_of(std::begin(prefixes), std::end(prefixes),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

template <size_t n>
bool IsOne(std::string_view name, const std::string_view (&names)[n]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// Empty: nothing worth a word.
std::string_view WhatFor(const ElfSymbol& symbol) {
  const std::string_view name = symbol.name;
  if (name.starts_with("_Z")) {
    for (const Group& group : kCxxGroups) {
      if (name.find(group.prefix) != name.npos) return group.what;
    }
  } else {
    if (IsOne(name, kPlain)) return "";
    // Mathematical functions have names of all kinds.
    const bool is_math = symbol.library.starts_with("libm.") && !name.starts_with("fe");
    for (const Group& group : kGroups) {
      if (!is_math && name.starts_with(group.prefix)) return group.what;
    }
    if (StartsWithOne(name, kPlainPrefixes)) return "";
  }
  const bool is_runtime = IsOne(symbol.library, kRuntimeLibraries);
  const bool is_c = symbol.library.empty() || symbol.library.starts_with("libc.");
  return is_runtime && !is_c ? "" : "something that is neither arithmetic nor memory";
}

DetectorFinding Notice(std::string evidence) {
  DetectorFinding finding;
  finding.severity = v1::Finding::NOTICE;
  finding.evidence = std::move(evidence);
  return finding;
}

class LibraryCallsDetector : public Detector {
 public:
  std::string_view name() const override { return "library_calls"; }

  std::vector<DetectorFinding> Inspect(const Evidence& evidence) const override {
    std::vector<DetectorFinding> findings;
    const ElfImage image = ReadElf(evidence.shared_object);
    for (const std::string_view library : image.needed) {
      if (findings.size() >= kFindingsMax || IsOne(library, kRuntimeLibraries)) continue;
      findings.push_back(Notice(
          absl::StrCat("the artifact needs the library ", Av(library.substr(0, kNameBytesMax)))));
    }
    for (const ElfSymbol& symbol : image.undefined) {
      const std::string_view what = WhatFor(symbol);
      if (findings.size() >= kFindingsMax || what.empty()) continue;
      const std::string_view library =
          symbol.library.empty() ? "some library" : symbol.library.substr(0, kNameBytesMax);
      findings.push_back(
          Notice(absl::StrCat("the artifact takes ", Av(symbol.name.substr(0, kNameBytesMax)),
                              " from ", Av(library), ": ", Av(what))));
    }
    return findings;
  }
};

}  // namespace

std::unique_ptr<Detector> MakeLibraryCallsDetector() {
  return std::make_unique<LibraryCallsDetector>();
}

}  // namespace assay
