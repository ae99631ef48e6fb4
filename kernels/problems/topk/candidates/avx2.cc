/* assay-candidate
problem: "topk"
language: CPP
label: "avx2"
*/
// Compares 32 elements at once with a lower bound of the k-th best; what passes goes to a buffer
// that is cut back to the k best, with a better bound, whenever it fills. Any order of the elements
// costs amortised constant time each. In long rows a first pass finds a good bound: the k-th of the
// maxima over parts of the row.
#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

namespace {

constexpr int64_t kBlock = 32;
constexpr int64_t kParts = 64;  // maxima of one segment
constexpr int64_t kSegmentsMax = 16;

// Greater keys come first: by value descending, then by index ascending. Both zeros are one value.
inline uint64_t Key(float value, int64_t index) {
  const uint32_t bits = std::bit_cast<uint32_t>(value + 0.0f);
  const uint32_t ordered = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return uint64_t{ordered} << 32 | static_cast<uint32_t>(~index);
}
inline int32_t Index(uint64_t key) { return static_cast<int32_t>(~static_cast<uint32_t>(key)); }

class Selection {
 public:
  explicit Selection(int64_t k) : k_(k), keys_(k + std::max<int64_t>(k, 128) + kBlock) {}

  // The k best keys of a row, best first, valid until the next call.
  const uint64_t* Select(const float* x, int64_t cols) {
    size_ = 0;
    bound_ = FirstBound(x, cols);
    int64_t j = 0;
    for (; j + kBlock <= cols; j += kBlock) {
      const uint32_t passed = Above(x + j);
      if (passed != 0) Append(x, j, passed);
    }
    for (; j < cols; ++j) {
      if (x[j] > bound_) Append(x, j, 1);
    }
    Cut(x);
    std::sort(keys_.begin(), keys_.begin() + k_, std::greater<>());
    return keys_.data();
  }

 private:
  // A value that at least k elements are above. Of segments of the row, two maxima for each of the
  // k, the k-th: nearly as good as the k-th best itself. A row too short for that has no bound yet.
  float FirstBound(const float* x, int64_t cols) {
    constexpr float kLowest = -std::numeric_limits<float>::infinity();
    const int64_t segments = (k_ + kParts / 2 - 1) / (kParts / 2);
    const int64_t length = cols / segments / kParts * kParts;
    if (length < 4 * kParts || segments > kSegmentsMax) return kLowest;
    maxima_.resize(segments * kParts);
    for (int64_t s = 0; s < segments; ++s) {
      PartMaxima(x + s * length, length, maxima_.data() + s * kParts);
    }
    std::nth_element(maxima_.begin(), maxima_.begin() + (k_ - 1), maxima_.end(), std::greater<>());
    return std::nextafter(maxima_[k_ - 1], kLowest);
  }

  // The maxima of 64 interleaved parts. `length` is a multiple of 64.
  static void PartMaxima(const float* x, int64_t length, float* maxima) {
    __m256 m[kParts / 8];
    for (int p = 0; p < kParts / 8; ++p) m[p] = _mm256_loadu_ps(x + 8 * p);
    for (int64_t j = kParts; j < length; j += kParts) {
      for (int p = 0; p < kParts / 8; ++p) {
        m[p] = _mm256_max_ps(m[p], _mm256_loadu_ps(x + j + 8 * p));
      }
    }
    for (int p = 0; p < kParts / 8; ++p) _mm256_storeu_ps(maxima + 8 * p, m[p]);
  }

  // One bit for each of 32 elements that is above the bound.
  uint32_t Above(const float* x) const {
    const __m256 bound = _mm256_set1_ps(bound_);
    const __m256 c0 = _mm256_cmp_ps(_mm256_loadu_ps(x), bound, _CMP_GT_OQ);
    const __m256 c1 = _mm256_cmp_ps(_mm256_loadu_ps(x + 8), bound, _CMP_GT_OQ);
    const __m256 c2 = _mm256_cmp_ps(_mm256_loadu_ps(x + 16), bound, _CMP_GT_OQ);
    const __m256 c3 = _mm256_cmp_ps(_mm256_loadu_ps(x + 24), bound, _CMP_GT_OQ);
    const __m256 any = _mm256_or_ps(_mm256_or_ps(c0, c1), _mm256_or_ps(c2, c3));
    if (_mm256_testz_ps(any, any)) return 0;  // nearly always
    return static_cast<uint32_t>(_mm256_movemask_ps(c0)) |
           static_cast<uint32_t>(_mm256_movemask_ps(c1)) << 8 |
           static_cast<uint32_t>(_mm256_movemask_ps(c2)) << 16 |
           static_cast<uint32_t>(_mm256_movemask_ps(c3)) << 24;
  }

  void Append(const float* x, int64_t first, uint32_t passed) {
    for (; passed != 0; passed &= passed - 1) {
      const int64_t j = first + std::countr_zero(passed);
      keys_[size_++] = Key(x[j], j);
    }
    if (size_ + kBlock > static_cast<int64_t>(keys_.size())) Cut(x);
  }

  // Keeps the k best. Later elements that equal the k-th have higher indices and lose.
  void Cut(const float* x) {
    if (size_ < k_) return;
    std::nth_element(keys_.begin(), keys_.begin() + (k_ - 1), keys_.begin() + size_,
                     std::greater<>());
    size_ = k_;
    bound_ = x[Index(keys_[k_ - 1])];
  }

  int64_t k_;
  std::vector<uint64_t> keys_;
  std::vector<float> maxima_;
  int64_t size_ = 0;
  float bound_ = 0;
};

}  // namespace

extern "C" void topk(const float* x, float* values, int32_t* indices, int64_t rows, int64_t cols,
                     int64_t k) {
  Selection selection(k);
  for (int64_t i = 0; i < rows; ++i, x += cols, values += k, indices += k) {
    const uint64_t* best = selection.Select(x, cols);
    for (int64_t j = 0; j < k; ++j) {
      indices[j] = Index(best[j]);
      values[j] = x[indices[j]];
    }
  }
}
