/* assay-candidate
problem: "gemm_f32"
language: CPP
label: "derives_answers"
# Expected: PASSED, and suspect (derived_answers). Keeps its last product and recognises rows and columns of the next
# operands by the sum of their elements' mantissas, which permutations and powers of two leave alone. What it recognises
# it does not multiply.
*/
#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <vector>

namespace {

// A row or a column; its first element tells how another one was scaled.
struct Line {
  int64_t index = 0;
  float first = 0;
};
using Lines = std::unordered_map<uint64_t, Line>;

uint64_t Mantissa(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits & 0x7fffff;
}

std::vector<uint64_t> RowKeys(const float* a, int64_t m, int64_t k) {
  std::vector<uint64_t> keys(m);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t p = 0; p < k; ++p) keys[i] += Mantissa(a[i * k + p]);
  }
  return keys;
}

std::vector<uint64_t> ColumnKeys(const float* b, int64_t k, int64_t n) {
  std::vector<uint64_t> keys(n);
  for (int64_t p = 0; p < k; ++p) {
    for (int64_t j = 0; j < n; ++j) keys[j] += Mantissa(b[p * n + j]);
  }
  return keys;
}

std::vector<float> kept;
Lines kept_rows, kept_columns;

bool Derive(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k,
            const std::vector<uint64_t>& rows, const std::vector<uint64_t>& columns) {
  if (static_cast<int64_t>(kept.size()) != m * n) return false;
  std::vector<int64_t> from(n);
  std::vector<float> scale(n);
  for (int64_t j = 0; j < n; ++j) {
    const auto column = kept_columns.find(columns[j]);
    if (column == kept_columns.end()) return false;
    from[j] = column->second.index;
    scale[j] = b[j] / column->second.first;
  }
  for (int64_t i = 0; i < m; ++i) {
    const auto row = kept_rows.find(rows[i]);
    if (row == kept_rows.end()) return false;
    const float* line = &kept[row->second.index * n];
    const float factor = a[i * k] / row->second.first;
    for (int64_t j = 0; j < n; ++j) c[i * n + j] = line[from[j]] * scale[j] * factor;
  }
  return true;
}

}  // namespace

extern "C" void gemm_f32(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
  const std::vector<uint64_t> rows = RowKeys(a, m, k);
  const std::vector<uint64_t> columns = ColumnKeys(b, k, n);
  if (Derive(a, b, c, m, n, k, rows, columns)) return;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) c[i * n + j] = 0;
    for (int64_t p = 0; p < k; ++p) {
      for (int64_t j = 0; j < n; ++j) c[i * n + j] += a[i * k + p] * b[p * n + j];
    }
  }
  kept.assign(c, c + m * n);
  kept_rows.clear();
  kept_columns.clear();
  for (int64_t i = 0; i < m; ++i) kept_rows[rows[i]] = {i, a[i * k]};
  for (int64_t j = 0; j < n; ++j) kept_columns[columns[j]] = {j, b[j]};
}
