/* assay-candidate
problem: "vector_add"
language: CPP
label: "executes_suid"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Runs a program that is root's whoever calls it.
*/
#include <unistd.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  execl("/usr/bin/su", "su", "-c", "exit 0", nullptr);
}
