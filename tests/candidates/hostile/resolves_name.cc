/* assay-candidate
problem: "vector_add"
language: CPP
label: "resolves_name"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Asks for the address of a name.
*/
#include <netdb.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  addrinfo* found = nullptr;
  if (getaddrinfo("localhost", "80", nullptr, &found) == 0) freeaddrinfo(found);
}
