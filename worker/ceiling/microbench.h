// The microbenchmarks' inner loops, in one variant per instruction set. Pure functions on memory.
#ifndef ASSAY_WORKER_CEILING_MICROBENCH_H_
#define ASSAY_WORKER_CEILING_MICROBENCH_H_

#include <cstddef>
#include <cstdint>

namespace assay {

// Streams work on doubles; counts are multiples of kStreamBlock and pointers are 64-byte aligned.
inline constexpr size_t kStreamBlock = 64;

struct MicrobenchSet {
  const char* name;  // "sse2", "avx2", "avx512"
  // Sums a[0..count).
  double (*read)(const double* a, size_t count);
  // a = value; a = b; a = b + scale * c. The second of each pair stores past the caches.
  void (*write)(double* a, double value, size_t count);
  void (*write_nt)(double* a, double value, size_t count);
  void (*copy)(double* a, const double* b, size_t count);
  void (*copy_nt)(double* a, const double* b, size_t count);
  void (*triad)(double* a, const double* b, const double* c, double scale, size_t count);
  void (*triad_nt)(double* a, const double* b, const double* c, double scale, size_t count);
  // `iterations` rounds of independent multiply-add chains; returns the operations done (multiply
  // and add count 2) and folds the result into *sink, so that nothing is optimised away.
  int64_t (*fma_f32)(int64_t iterations, double* sink);
  int64_t (*fma_f64)(int64_t iterations, double* sink);
  // 8-bit products summed in 16-bit lanes, 16-bit products summed in 32-bit lanes, and the dot
  // product instruction where there is one (null otherwise).
  int64_t (*madd_i8)(int64_t iterations, double* sink);
  int64_t (*madd_i16)(int64_t iterations, double* sink);
  int64_t (*dot_i8)(int64_t iterations, double* sink);
};

const MicrobenchSet& Sse2Microbench();
const MicrobenchSet& Avx2Microbench();
const MicrobenchSet& Avx512Microbench();

// The widest set that this processor runs.
const MicrobenchSet& BestMicrobench();

// All sets that this processor runs: a narrower one may be faster (frequency licences).
// `sets` has room for three; returns how many.
size_t RunnableMicrobenches(const MicrobenchSet** sets);

}  // namespace assay

#endif  // ASSAY_WORKER_CEILING_MICROBENCH_H_
