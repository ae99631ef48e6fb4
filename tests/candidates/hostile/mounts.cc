/* assay-candidate
problem: "vector_add"
language: CPP
label: "mounts"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Makes a mount namespace and mounts.
*/
#include <sched.h>
#include <sys/mount.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  (void)!unshare(CLONE_NEWNS);
  (void)!mount("none", "/tmp", "tmpfs", 0, nullptr);
}
