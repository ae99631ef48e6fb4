/* assay-candidate
problem: "vector_add"
language: CPP
label: "blocks_signals_and_forks"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL or PROCESS_CREATION). Blocks every signal, so that
# no handler can say which call was refused, and forks.
*/
#include <signal.h>
#include <unistd.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, nullptr);
  if (fork() == 0) _exit(0);
}
