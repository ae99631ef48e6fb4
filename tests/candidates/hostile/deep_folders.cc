/* assay-candidate
problem: "vector_add"
language: CPP
label: "deep_folders"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Makes folders in folders.
*/
#include <sys/stat.h>
#include <unistd.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  for (int i = 0; i < 4096; ++i) {
    if (mkdir("d", 0700) != 0 || chdir("d") != 0) break;
  }
}
