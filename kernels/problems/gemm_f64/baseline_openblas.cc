// OpenBLAS on one thread. Its headers are not part of the tool chain of candidates, so the two
// functions are declared here.
#include <vector>

extern "C" {
void openblas_set_num_threads(int num_threads);
void cblas_dgemm(int order, int trans_a, int trans_b, int m, int n, int k, double alpha,
                 const double* a, int lda, const double* b, int ldb, double beta, double* c,
                 int ldc);
}

namespace {

constexpr int kRowMajor = 101;
constexpr int kNoTranspose = 111;

// The kernels of the library prefetch beyond the part of its packing buffer that a small product
// fills. While those pages are unmapped, each prefetch costs a page walk and a product is up to
// four times slower; one larger product maps them.
bool MapPackingBuffer() {
  openblas_set_num_threads(1);
  constexpr int kSize = 512;
  const std::vector<double> zeros(kSize * kSize);
  std::vector<double> out(kSize * kSize);
  cblas_dgemm(kRowMajor, kNoTranspose, kNoTranspose, kSize, kSize, kSize, 1.0, zeros.data(), kSize,
              zeros.data(), kSize, 0.0, out.data(), kSize);
  return true;
}

}  // namespace

extern "C" void gemm_f64(const double* a, const double* b, double* c, int64_t m, int64_t n,
                         int64_t k) {
  static const bool mapped = MapPackingBuffer();
  (void)mapped;
  const int rows = static_cast<int>(m);
  const int cols = static_cast<int>(n);
  const int depth = static_cast<int>(k);
  cblas_dgemm(kRowMajor, kNoTranspose, kNoTranspose, rows, cols, depth, 1.0, a, depth, b, cols, 0.0,
              c, cols);
}
