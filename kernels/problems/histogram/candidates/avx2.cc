/* assay-candidate
problem: "histogram"
language: CPP
label: "avx2"
*/
// Two elements that fall into the same bin wait for each other through memory. Eight neighbours
// count into eight tables, so that only every eighth can meet its own bin again; the tables are
// added at the end by vectors. A group of eight equal elements is one addition. With many bins the
// tables would fall out of the cache and elements rarely meet, so that one table serves.
#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace {

constexpr int64_t kTables = 8;
constexpr int64_t kBinsMax = 2048;  // 64 KiB of tables

void OneTable(const int32_t* x, int32_t* counts, int64_t n, int64_t bins) {
  std::fill(counts, counts + bins, 0);
  for (int64_t i = 0; i < n; ++i) ++counts[x[i]];
}

void CountInto(int32_t* tables, int64_t stride, const int32_t* x, int64_t n) {
  int64_t i = 0;
  for (; i + kTables <= n; i += kTables) {
    const __m256i eight = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i));
    const __m256i first = _mm256_broadcastd_epi32(_mm256_castsi256_si128(eight));
    const __m256i differ = _mm256_xor_si256(eight, first);
    if (_mm256_testz_si256(differ, differ)) {
      tables[x[i]] += kTables;
      continue;
    }
    for (int64_t t = 0; t < kTables; ++t) ++tables[t * stride + x[i + t]];
  }
  for (; i < n; ++i) ++tables[x[i]];
}

void AddTables(const int32_t* tables, int64_t stride, int32_t* counts, int64_t bins) {
  int64_t i = 0;
  for (; i + 8 <= bins; i += 8) {
    __m256i sum = _mm256_setzero_si256();
    for (int64_t t = 0; t < kTables; ++t) {
      const auto* source = reinterpret_cast<const __m256i*>(tables + t * stride + i);
      sum = _mm256_add_epi32(sum, _mm256_loadu_si256(source));
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(counts + i), sum);
  }
  for (; i < bins; ++i) {
    int32_t sum = 0;
    for (int64_t t = 0; t < kTables; ++t) sum += tables[t * stride + i];
    counts[i] = sum;
  }
}

}  // namespace

extern "C" void histogram(const int32_t* x, int32_t* counts, int64_t n, int64_t bins) {
  if (bins > kBinsMax || n < bins) return OneTable(x, counts, n, bins);
  // A line more than the bins, so that equal bins of the tables do not share a set of the cache.
  const int64_t stride = (bins + 15) / 16 * 16 + 16;
  thread_local std::vector<int32_t> tables;
  tables.assign(kTables * stride, 0);
  CountInto(tables.data(), stride, x, n);
  AddTables(tables.data(), stride, counts, bins);
}
