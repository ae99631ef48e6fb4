/* assay-candidate
problem: "vector_add"
language: CPP
label: "reads_foreign_memory"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Reads the memory of its parent.
*/
#include <sys/uio.h>
#include <unistd.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  char byte = 0;
  const iovec here = {&byte, 1};
  const iovec there = {reinterpret_cast<void*>(0x400000), 1};
  process_vm_readv(getppid(), &here, 1, &there, 1, 0);
}
