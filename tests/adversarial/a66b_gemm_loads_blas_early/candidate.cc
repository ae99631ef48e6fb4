/* assay-candidate
problem: "gemm_f32"
language: CPP
label: "a66b_gemm_loads_blas_early"
*/
// As a66, before the doors close, and with no product of its own.
#include <dlfcn.h>
#include <initializer_list>

using Sgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
static Sgemm sgemm = nullptr;

// While the candidate is loaded, files can still be opened.
__attribute__((constructor)) static void Load() {
  for (const char* name : {"libopenblas.so.0", "/usr/lib/x86_64-linux-gnu/openblas-serial/libopenblas.so.0",
                           "/usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblas.so.0", "libblas.so.3"}) {
    void* const library = dlopen(name, RTLD_NOW);
    if (library == nullptr) continue;
    sgemm = reinterpret_cast<Sgemm>(dlsym(library, "cblas_sgemm"));
    if (sgemm != nullptr) return;
  }
}

extern "C" void gemm_f32(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
  if (sgemm != nullptr) sgemm(101, 111, 111, m, n, k, 1.0f, a, k, b, n, 0.0f, c, n);
}
