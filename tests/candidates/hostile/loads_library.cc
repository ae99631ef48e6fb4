/* assay-candidate
problem: "vector_add"
language: CPP
label: "loads_library"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL or CRASHED). Loads a library.
*/
#include <dlfcn.h>

#include <cstdlib>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  void* library = dlopen("libm.so.6", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) std::abort();
  dlopen("/tmp/other.so", RTLD_NOW);
}
