/* assay-candidate
problem: "vector_add"
language: CPP
label: "big_file"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Fills a file.
*/
#include <fcntl.h>
#include <unistd.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  static char block[1 << 20];
  const int fd = open("/tmp/big", O_WRONLY | O_CREAT, 0600);
  for (int i = 0; fd >= 0 && i < 256; ++i) {
    if (write(fd, block, sizeof(block)) < 0) break;
  }
}
