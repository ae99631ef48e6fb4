/* assay-candidate
problem: "vector_add"
language: CPP
label: "goes_on_without_memory"
# Expected: PASSED. Asks for more memory than there is, in three ways, and does without.
*/
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  const volatile std::size_t bytes = std::size_t{1} << 50;
  double* quiet = new (std::nothrow) double[bytes / sizeof(double)];
  void* plain = std::malloc(bytes);
  double* loud = nullptr;
  try {
    loud = new double[bytes / sizeof(double)];
  } catch (const std::bad_alloc&) {
  }
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  delete[] loud;
  std::free(plain);
  delete[] quiet;
}
