#include "worker/builder/compile_options.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/strings.h"
#include "worker/builder/builder.h"
#include "worker/sandbox/openblas.h"

namespace assay {
namespace {

constexpr size_t kOptionBytesMax = 128;
constexpr size_t kPathBytesMax = 255;

constexpr std::string_view kExact[] = {
    "-O0", "-O1", "-O2", "-O3", "-Os", "-Og", "-g0", "-fopenmp-simd", "-fno-exceptions",
    "-fno-rtti", "-fomit-frame-pointer", "-fno-stack-protector", "-fstrict-aliasing",
    "-fno-strict-aliasing",
    // Loops and vectorisation.
    "-funroll-loops", "-funroll-all-loops", "-fno-unroll-loops", "-fpeel-loops", "-fsplit-loops",
    "-funswitch-loops", "-fno-unswitch-loops", "-ftree-vectorize", "-fno-tree-vectorize",
    "-ftree-loop-vectorize", "-fno-tree-loop-vectorize", "-ftree-slp-vectorize",
    "-fno-tree-slp-vectorize", "-floop-interchange", "-fno-loop-interchange",
    "-floop-unroll-and-jam", "-floop-block", "-ftree-loop-distribution",
    "-fno-tree-loop-distribution", "-fno-tree-loop-distribute-patterns", "-fprefetch-loop-arrays",
    "-fno-prefetch-loop-arrays", "-fgraphite-identity", "-fivopts", "-fno-ivopts",
    "-fvect-cost-model=unlimited", "-fvect-cost-model=dynamic", "-fvect-cost-model=cheap",
    "-fvect-cost-model=very-cheap",
    // Scheduling and inlining.
    "-finline-functions", "-fno-inline-functions", "-fno-inline", "-fschedule-insns",
    "-fno-schedule-insns", "-fschedule-insns2", "-fno-schedule-insns2", "-fmodulo-sched",
    "-frename-registers", "-fno-rename-registers", "-fipa-pta", "-fgcse-las", "-fgcse-sm",
    "-fno-gcse",
    // Vector width of the instruction set that was reached.
    "-mprefer-vector-width=none", "-mprefer-vector-width=128", "-mprefer-vector-width=256",
    "-mprefer-vector-width=512", "-mno-avx512f", "-mno-vzeroupper", "-mvzeroupper",
    // Warnings.
    "-w", "-Wall", "-Wextra", "-Wno-unused-parameter"};

// Options with a number after '='.
constexpr std::string_view kNumbered[] = {"-falign-functions=",
                                          "-falign-loops=",
                                          "-falign-jumps=",
                                          "-finline-limit=",
                                          "--param=max-unroll-times=",
                                          "--param=max-unrolled-insns=",
                                          "--param=max-completely-peel-times=",
                                          "--param=max-completely-peeled-insns=",
                                          "--param=max-inline-insns-single=",
                                          "--param=max-inline-insns-auto=",
                                          "--param=inline-unit-growth=",
                                          "--param=prefetch-latency=",
                                          "--param=simultaneous-prefetches="};

bool IsIdentifierCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

}  // namespace

bool IsOptionAllowed(std::string_view option) {
  if (option.size() > kOptionBytesMax) return false;
  if (std::find(std::begin(kExact), std::end(kExact), option) != std::end(kExact)) return true;
  for (const std::string_view prefix : kNumbered) {
    if (!option.starts_with(prefix)) continue;
    const std::string_view number = option.substr(prefix.size());
    return !number.empty() && number.size() <= 6 &&
           std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; });
  }
  return false;
}

bool IsMacroNameAllowed(std::string_view name) {
  return !name.empty() && name.size() <= limits::kNameBytesMax &&
         !std::isdigit(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), IsIdentifierCharacter);
}

bool IsSourcePathAllowed(std::string_view path) {
  if (path.empty() || path.size() > kPathBytesMax) return false;
  for (const absl::string_view part : absl::StrSplit(Av(path), '/')) {
    if (part.empty() || part[0] == '.' || part[0] == '-') return false;
    if (!std::all_of(part.begin(), part.end(), [](char c) {
          return IsIdentifierCharacter(c) || c == '.' || c == '-' || c == '+';
        })) {
      return false;
    }
  }
  return true;
}

absl::StatusOr<std::vector<std::string>> LibraryFlags(std::string_view library,
                                                      const std::string& root) {
  if (library != kOpenblasLibrary) {
    return absl::InvalidArgumentError(
        absl::StrCat("library '", Av(library), "' is not known; the known one is openblas"));
  }
  const std::optional<OpenblasFolders> folders = FindOpenblas(root);
  if (!folders.has_value()) {
    return ErrorWithReason(absl::StatusCode::kUnavailable, kLibraryNotInstalled,
                           "OpenBLAS is not installed here; install libopenblas-dev");
  }
  return std::vector<std::string>{absl::StrCat("-I", folders->headers),
                                  absl::StrCat("-L", folders->library),
                                  absl::StrCat("-Wl,-rpath,", folders->library), "-lopenblas"};
}

}  // namespace assay
