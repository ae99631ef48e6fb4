/* assay-candidate
problem: "vector_add"
language: CPP
label: "memfd_executes"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Runs a program that is in no file.
*/
#include <sys/syscall.h>
#include <unistd.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  const int fd = static_cast<int>(syscall(SYS_memfd_create, "x", 0));
  char* arguments[] = {nullptr};
  (void)!syscall(SYS_execveat, fd, "", arguments, arguments, 0x1000);
}
