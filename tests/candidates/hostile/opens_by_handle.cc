/* assay-candidate
problem: "vector_add"
language: CPP
label: "opens_by_handle"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Opens a file by its number, past every path.
*/
#include <sys/syscall.h>
#include <unistd.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  char handle[64] = {};
  (void)!syscall(SYS_open_by_handle_at, -100, handle, 0);
}
