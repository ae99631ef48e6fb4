/* assay-candidate
problem: "vector_add"
language: CPP
label: "fork_bomb"
# Expected: RUNTIME_ERROR (PROCESS_CREATION). Forks over and over. Bounded at 1024 processes of
# 30 seconds, should the walls be missing.
*/
#include <unistd.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int i = 0; i < 1024; ++i) {
    if (fork() == 0) {
      sleep(30);
      _exit(0);
    }
  }
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
