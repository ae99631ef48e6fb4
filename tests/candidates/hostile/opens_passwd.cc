/* assay-candidate
problem: "vector_add"
language: CPP
label: "opens_passwd"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Opens a file of the machine.
*/
#include <fcntl.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  const int fd = open("/etc/passwd", O_RDONLY);
  if (fd >= 0) c[0] = 0;
}
