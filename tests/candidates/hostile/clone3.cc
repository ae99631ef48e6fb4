/* assay-candidate
problem: "vector_add"
language: CPP
label: "clone3"
# Expected: RUNTIME_ERROR (PROCESS_CREATION). Starts a process by the call whose flags no filter
# can read.
*/
#include <sys/syscall.h>
#include <unistd.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  char arguments[88] = {};
  (void)!syscall(SYS_clone3, arguments, sizeof(arguments));
}
