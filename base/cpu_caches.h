// Sizes of the machine's data caches. Functions are thread-safe.
#ifndef ASSAY_BASE_CPU_CACHES_H_
#define ASSAY_BASE_CPU_CACHES_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace assay {

// Of the first core, in bytes; 0 when unknown.
struct CpuCaches {
  int64_t l1_bytes = 0;
  int64_t l2_bytes = 0;
  int64_t l3_bytes = 0;
};

// `root` is put before /sys, for tests.
CpuCaches ReadCpuCaches(const std::string& root);

// Bytes of the largest cache that a core of this machine sees; a large guess where the kernel does
// not tell. Read once.
size_t LastLevelCacheBytes();

// Bytes of the largest cache that each core of this machine has for itself; a guess where the
// kernel does not tell. Read once.
size_t CoreCacheBytes();

}  // namespace assay

#endif  // ASSAY_BASE_CPU_CACHES_H_
