#include "worker/ceiling/microbench.h"

namespace assay {

size_t RunnableMicrobenches(const MicrobenchSet** sets) {
  size_t count = 0;
  sets[count++] = &Sse2Microbench();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    sets[count++] = &Avx2Microbench();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")) {
      sets[count++] = &Avx512Microbench();
    }
  }
  return count;
}

const MicrobenchSet& BestMicrobench() {
  const MicrobenchSet* sets[3];
  return *sets[RunnableMicrobenches(sets) - 1];
}

}  // namespace assay
