/* assay-candidate
problem: "vector_add"
language: CPP
label: "vfork"
# Expected: RUNTIME_ERROR (PROCESS_CREATION). Starts one process, by the older call.
*/
#include <unistd.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  if (vfork() == 0) _exit(0);
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
