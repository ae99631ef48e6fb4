/* assay-candidate
problem: "vector_add"
language: CPP
label: "shared_memory"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Leaves memory that outlives it.
*/
#include <sys/ipc.h>
#include <sys/shm.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  (void)!shmget(IPC_PRIVATE, 1 << 20, IPC_CREAT | 0600);
}
