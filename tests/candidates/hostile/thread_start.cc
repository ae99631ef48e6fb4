/* assay-candidate
problem: "vector_add"
language: CPP
label: "thread_start"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Starts a thread that computes later.
*/
#include <pthread.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  static pthread_t thread;
  pthread_create(
      &thread, nullptr, [](void*) -> void* { return nullptr; }, nullptr);
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
