/* assay-candidate
problem: "vector_add"
language: CPP
label: "mmap_overcommit"
# Expected: RESOURCE_EXCEEDED (MEMORY_LIMIT). Maps more than any machine has, and touches 4 GiB
# of it.
*/
#include <sys/mman.h>
#include <new>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  constexpr size_t kMapped = size_t{1} << 40;
  constexpr size_t kTouched = size_t{4} << 30;
  void* memory = mmap(nullptr, kMapped, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  volatile char* bytes =
      memory == MAP_FAILED ? new char[kMapped] : static_cast<volatile char*>(memory);
  for (size_t i = 0; i < kTouched; i += 4096) bytes[i] = 1;
}
