/* assay-candidate
problem: "vector_add"
language: CPP
label: "socket"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Opens a socket.
*/
#include <sys/socket.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd >= 0) c[0] = 0;
}
